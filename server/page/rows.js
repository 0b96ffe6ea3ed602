// rows: entropy and heaviest key of each row
