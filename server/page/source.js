// source: the request as text, dropped files, labels
