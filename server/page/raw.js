// raw: the answer as it came
