// Where names stand beside points, so that they cover neither each other nor a point.

const LETTER = 6.8; // pixels a letter at the size of the chart's names: ids have wide ones
const LINE = 13; // pixels a line
const MOST = 14;

/** Return where names are written, as triples of x, y and text. `names` are texts with their points, the
 * most wanted first; what is needed may cover one of `points`, another name is left out instead. */
export function placed(names, points, { left, right, top }) {
  const spots = [];
  const covered = ([a, b, length]) =>
    points.filter(([x, y]) => x > a - 5 && x < a + length + 5 && y > b - 14 && y < b + 5).length;
  for (const { text, at, isNeeded } of names.slice(0, MOST)) {
    const [x, y] = at;
    const length = text.length * LETTER;
    const [spot] = [
      [x + 9, y + 16],
      [x - 9 - length, y - 8],
      [x + 9, y - 8],
      [x - 9 - length, y + 16],
      [x - length / 2, y - 16],
      [x - length / 2, y + 24],
      [x + 4 - length, y - 10],
      [x - 4, y - 10],
    ]
      .filter(([a, b]) => a > left && a + length < right && b > top)
      .filter(([a, b]) => !spots.some(([c, d, l]) => meets(a, length, c, l) && near(b, d)))
      .sort((first, second) => covered([...first, length]) - covered([...second, length]));
    if (!spot || (!isNeeded && covered([...spot, length]))) continue;
    spots.push([...spot, length, text]);
  }
  return spots.map(([x, y, , text]) => [x, y, text]);
}

const meets = (a, length, b, otherLength) => a < b + otherLength && b < a + length;
const near = (a, b) => Math.abs(a - b) < LINE;
