// heatmap: draws a matrix of weights on a canvas
