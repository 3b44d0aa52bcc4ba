// Infers the type of a column from its values, as `selkie import --create` does, but leaves more room: whoever imports
// here adds other records by hand afterwards. Must not know where the values come from.

/** Types that all values so far fit. Only texts fit none of them. */
const TYPES = ["boolean", "integer", "decimal", "double", "date", "datetime", "time", "json"] as const;
type Type = (typeof TYPES)[number];

/** MariaDB's most digits, and digits after the point. */
const DECIMAL_MAX_DIGITS = 65;
const DECIMAL_MAX_SCALE = 38;
const VARCHAR_CHARS = 255;
/** Room in a decimal for the rows that were not read. */
const SPARE_DIGITS = 20;
const SPARE_SCALE = 10;
/** A guessed decimal has at least these digits: decimal(10,2). */
const LEAST_DIGITS = 8;
const LEAST_SCALE = 2;

const NUMBER = /^(-?)(0|[1-9]\d*)(?:\.(\d+))?(?:[eE][-+]?\d+)?$/;
const TIME = /^-?(\d{2,3}):[0-5]\d:[0-5]\d(?:\.(\d{1,6}))?$/;
const MOMENT = /^(\d{4}-\d{2}-\d{2})(?:[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.(\d{1,6}))?(?:Z|[-+]\d{2}:\d{2})?)?$/;

function isDate(text: string): boolean {
  const date = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

export class Values {
  #types: readonly Type[] = TYPES;
  #count = 0;
  #nulls = 0;
  #least = 0n;
  #most = 0n;
  #digits = 0;
  #scale = 0;
  #fraction = 0;
  #chars = 0;
  #bytes = 0;

  addNull(): void {
    this.#nulls += 1;
  }

  add(text: string): void {
    this.#narrow(this.#typesOf(text), text);
  }

  /** Adds a string of JSON, which may be a time but never a number, since its writer put it in quotes. */
  addString(text: string): void {
    const types = this.#typesOf(text).filter((type) => type === "date" || type === "datetime" || type === "time");
    this.#narrow(types, text);
  }

  #narrow(types: readonly Type[], text: string): void {
    this.#count += 1;
    this.#types = this.#types.filter((type) => types.includes(type));
    this.#chars = Math.max(this.#chars, text.length);
    // At most three bytes for each unit of UTF-16.
    this.#bytes = Math.max(this.#bytes, text.length * 3);
  }

  #typesOf(text: string): Type[] {
    if (/^(?:true|false|yes|no)$/i.test(text)) return ["boolean"];
    if (/^[{[]/.test(text)) return isJson(text) ? ["json"] : [];
    const number = NUMBER.exec(text);
    if (number) return this.#number(text, number);
    const time = TIME.exec(text);
    if (time) {
      this.#fraction = Math.max(this.#fraction, time[2]?.length ?? 0);
      return Number(time[1]) <= 838 ? ["time"] : [];
    }
    const moment = MOMENT.exec(text);
    if (!moment || !isDate(moment[1]!)) return [];
    this.#fraction = Math.max(this.#fraction, moment[3]?.length ?? 0);
    return moment[2] === undefined ? ["date", "datetime"] : ["datetime"];
  }

  #number(text: string, [, , whole = "", behind = ""]: RegExpExecArray): Type[] {
    if (/e/i.test(text)) return Number.isFinite(Number(text)) ? ["double"] : [];
    // MariaDB stores no sign of a zero.
    if (text === "-0" || whole.length + behind.length > DECIMAL_MAX_DIGITS || behind.length > DECIMAL_MAX_SCALE)
      return [];
    this.#digits = Math.max(this.#digits, whole.length);
    this.#scale = Math.max(this.#scale, behind.length);
    if (behind) return ["decimal", "double"];
    const value = BigInt(text);
    if (value < this.#least) this.#least = value;
    if (value > this.#most) this.#most = value;
    return ["integer", "decimal", "double"];
  }

  /** Whether the values may be numbers of a key. */
  get isKey(): boolean {
    return this.#nulls === 0 && this.#count > 0 && this.#types.includes("integer");
  }

  /** Whether a column of the type of ids, `bigint unsigned`, can have the values. */
  get isId(): boolean {
    return this.#count > 0 && this.#types.includes("integer") && this.#least >= 0n && this.#most < 2n ** 64n;
  }

  /** Returns the type; for rows of which not all were read, one with room for other values. */
  type(isWhole: boolean): string {
    const has = (type: Type) => this.#count > 0 && this.#types.includes(type);
    const digits = isWhole ? this.#digits : Math.max(this.#digits, SPARE_DIGITS);
    const scale = isWhole ? this.#scale : Math.max(this.#scale, SPARE_SCALE);
    const fraction = isWhole ? this.#fraction : 6;
    const precise = (type: string) => (fraction ? `${type}(${fraction})` : type);
    if (has("boolean")) return "boolean";
    if (has("integer")) {
      if (isWhole && this.#least >= -(2n ** 31n) && this.#most < 2n ** 31n) return "int";
      if (this.#least >= -(2n ** 63n) && this.#most < 2n ** 63n) return "bigint";
      if (this.#least >= 0n && this.#most < 2n ** 64n) return "bigint unsigned";
    }
    if (has("decimal") && digits + scale <= DECIMAL_MAX_DIGITS) {
      // Integers alone come here if they are too many digits for `bigint`.
      const least = scale > 0 ? Math.max(scale, LEAST_SCALE) : 0;
      const most = Math.min(DECIMAL_MAX_DIGITS, Math.max(digits, LEAST_DIGITS) + least);
      return `decimal(${most},${Math.min(least, most - digits)})`;
    }
    if (has("double") && !has("decimal")) return "double";
    if (has("date")) return "date";
    if (has("datetime")) return precise("datetime");
    if (has("time")) return precise("time");
    if (has("json")) return "json";
    if (!isWhole) return "longtext";
    if (this.#chars <= VARCHAR_CHARS) return `varchar(${VARCHAR_CHARS})`;
    if (this.#bytes < 2 ** 16) return "text";
    return this.#bytes < 2 ** 24 ? "mediumtext" : "longtext";
  }
}
