// time: the stages of an answer as a bar
