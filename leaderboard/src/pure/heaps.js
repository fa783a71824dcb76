// Where dots lie that would cover each other. Functions of their arguments alone.

/** Heap dots that are nearer than they are wide: return how wide they are, between two limits, so
 * that no heap is higher than there is room, and at which height of its heap each lies. */
export function heaped(places, widest, narrowest, room) {
  const order = places.map((_, dot) => dot).sort((a, b) => places[a] - places[b]);
  for (let width = widest; ; width -= 0.5) {
    const heights = heightsOf(order, places, width);
    const highest = heights.reduce((most, height) => Math.max(most, height), 0);
    if ((highest + 1) * width <= room || width <= narrowest) return { width, heights, highest };
  }
}

/** Give each dot the lowest level at which none is nearer than its width. */
function heightsOf(order, places, width) {
  const ends = []; // of the last dot of each level
  const heights = places.map(() => 0);
  for (const dot of order) {
    let level = 0;
    while (ends[level] > places[dot] - width) level += 1;
    ends[level] = places[dot];
    heights[dot] = level;
  }
  return heights;
}
