// lines: queries left, keys right, and a line for each weight
