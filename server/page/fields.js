// fields: the fields of a request as controls
