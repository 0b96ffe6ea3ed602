// problem: an error, shown where it is
