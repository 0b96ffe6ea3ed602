// code: the request as curl, Python and JavaScript
