// heads: measures of heads, and what the answer loses without one
