// Search that forgives a slip: names and facts of models. Functions of their arguments alone.

// Letters of a word that may be wrong: none in a short one, where every other word would be near.
const SLIPS = [
  [4, 0],
  [7, 1],
  [Infinity, 2],
];

/** Write a text as it is searched. */
export function plain(text) {
  return text.normalize("NFKC").toLowerCase().trim().replace(/\s+/g, " ");
}

/** Return the indexes of the texts that a search finds, in order.
 *
 * Texts with the whole phrase; where there is none, those with every word of it; where there is
 * none, those with a word near each of its words. */
export function matching(texts, search) {
  const phrase = plain(search);
  const positions = texts.map((_, position) => position);
  const having = (test) => positions.filter((position) => test(texts[position]));
  const whole = having((text) => text.includes(phrase));
  if (whole.length) return whole;
  const words = phrase.split(" ");
  const every = having((text) => words.every((word) => text.includes(word)));
  if (every.length) return every;
  return having((text) => {
    const textWords = text.split(/[^\p{L}\p{N}]+/u);
    return words.every((word) => textWords.some((textWord) => isNear(word, textWord)));
  });
}

function isNear(word, textWord) {
  const [, most] = SLIPS.find(([length]) => word.length < length);
  // What is typed may be the beginning of a word, with a letter too many or too few.
  const lengths = Array.from({ length: 2 * most + 1 }, (_, k) => word.length - most + k);
  return lengths.some((length) => distance(word, textWord.slice(0, length)) <= most);
}

/** Count the letters to put in, take out, change or swap. */
function distance(a, b) {
  let before = [];
  let row = Array.from({ length: b.length + 1 }, (_, position) => position);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const change = row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(change, row[j] + 1, next[j - 1] + 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwap) next[j] = Math.min(next[j], before[j - 2] + 1);
    }
    before = row;
    row = next;
  }
  return row[b.length];
}
