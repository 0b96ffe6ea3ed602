// json: where in a JSON text a pointer or an offset leads
