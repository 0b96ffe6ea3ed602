// look: the heads as small multiples and one of them large
