// status: what the server says of itself, every two seconds
