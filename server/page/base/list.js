// list: what is asked of a list of numbers, which may be a typed array.
//
// List.sum(list, f) of f(x, i), by default of the numbers; it takes any list. List.order(list): the indices, that of
// the largest number first. List.far(list): the largest absolute value.
const List = (() => {
  const sum = (list, f = (x) => x) => list.reduce((all, x, i) => all + f(x, i), 0);
  const order = (list) => [...list.keys()].sort((a, b) => list[b] - list[a]);
  const far = (list) => list.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
  return { sum, order, far };
})();
