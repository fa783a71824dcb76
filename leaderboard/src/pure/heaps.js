// Where dots lie that would cover each other. Functions of their arguments alone.

/** Heap dots that are nearer than they are wide: return how wide they are, between two limits, so
 * that no heap is higher than there is room, and at which height of its heap each lies. */
export function heaped(positions, widest, narrowest, room) {
  const order = positions.map((_, dot) => dot).sort((a, b) => positions[a] - positions[b]);
  for (let width = widest; ; width -= 0.5) {
    const heights = heightsOf(order, positions, width);
    const highest = heights.reduce((most, height) => Math.max(most, height), 0);
    if ((highest + 1) * width <= room || width <= narrowest) return { width, heights, highest };
  }
}

/** Give each dot the lowest level at which none is nearer than its width. */
function heightsOf(order, positions, width) {
  const ends = []; // of the last dot of each level
  const heights = positions.map(() => 0);
  for (const dot of order) {
    let level = 0;
    while (ends[level] > positions[dot] - width) level += 1;
    ends[level] = positions[dot];
    heights[dot] = level;
  }
  return heights;
}
