// Rows as CSV (RFC 4180) that no spreadsheet runs.

// A cell that begins so would be a formula, also in the wide forms of East Asian keyboards.
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;

function field(value) {
  if (typeof value === "number") return String(value);
  const plain = String(value);
  const text = FORMULA.test(plain) ? `'${plain}` : plain;
  return `"${text.replaceAll('"', '""')}"`;
}

const UNKNOWN_DECIMALS = 6;

/** Round a number to what its standard error allows: two digits of the error, or six decimals where
 * none is known. */
export function roundedTo(value, error) {
  if (value === undefined) return value;
  if (!(error > 0)) return Number(value.toFixed(UNKNOWN_DECIMALS));
  const digits = Math.max(0, 1 - Math.floor(Math.log10(error)));
  return Number(value.toFixed(Math.min(digits, 20)));
}

/** Write rows, objects with the same keys, below a line of these keys. */
export function csvText(rows) {
  const keys = Object.keys(rows[0] ?? { model: "" });
  const lines = [
    keys.map(field),
    ...rows.map((row) => keys.map((key) => field(row[key] ?? ""))),
  ];
  return `${lines.map((line) => line.join(",")).join("\r\n")}\r\n`;
}
