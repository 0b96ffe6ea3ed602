// examples: requests to start from, made to fit the chosen model
