// Compares values and positions as MariaDB does. Must not know lists.

const NUMERIC = /^(tiny|small|medium|big)?int|^decimal|^year/;
const TEMPORAL = /^date|^timestamp/;

const exact = (value: unknown) => BigInt(typeof value === "string" ? value.replace(".", "") : (value as number));

/** Compares values as MariaDB orders them; NaN if that is not known here, as of texts, which have a collation. */
export function compareValues(a: unknown, b: unknown, type: string): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  if (NUMERIC.test(type)) return exact(a) < exact(b) ? -1 : 1;
  if (TEMPORAL.test(type)) return (a as string) < (b as string) ? -1 : 1;
  return Number.NaN;
}

/** Whether each transaction before the position `b` is before `a` too. */
export function covers(a: string, b: string): boolean {
  const numbers = (text: string) =>
    [...text.matchAll(/(\d+)-\d+-(\d+)/g)].map(([, domain, number]) => [domain, number]);
  const known = Object.fromEntries(numbers(a));
  return numbers(b).every(([domain, number]) => Number(known[domain!]) >= Number(number));
}
