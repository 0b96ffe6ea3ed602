// save: what is seen as PNG, SVG or CSV
