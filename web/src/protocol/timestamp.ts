// Points in time in the format of RFC 3339, to the microsecond, from the year 0 to the year 9999.

const FORM = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;
const MIN = -62_167_219_200_000_000n;
const MAX = 253_402_300_799_999_999n;

/** A point in time. Finer fractions than microseconds are cut, so that nothing expires later than it was written. */
export class Timestamp {
  /** Microseconds since 1970-01-01T00:00:00Z. */
  readonly micros: bigint;

  private constructor(micros: bigint) {
    this.micros = micros;
  }

  /** Reads RFC 3339; `undefined` for anything else. */
  static parse(text: string): Timestamp | undefined {
    const parts = FORM.exec(text);
    if (parts === null) return undefined;
    const number = (index: number): number => Number(parts[index] ?? 0);
    const [year, month, day, hour, minute, second] = [1, 2, 3, 4, 5, 6].map(number) as Six;
    const [offsetHour, offsetMinute] = [number(9), number(10)];
    const isInRange = month >= 1 && month <= 12 && day >= 1 && day <= daysOf(year, month) && hour <= 23 && minute <= 59;
    if (!isInRange || second > 60 || offsetHour > 23 || offsetMinute > 59) return undefined;
    const isLeap = second === 60;
    const fraction = isLeap ? "999999" : (parts[7] ?? "").padEnd(6, "0").slice(0, 6);
    const offset = (offsetHour * 60 + offsetMinute) * (parts[8] === "-" ? -1 : 1);
    const minutes = BigInt(daysSinceEpoch(year, month, day)) * 1_440n + BigInt(hour * 60 + minute - offset);
    const micros = (minutes * 60n + BigInt(isLeap ? 59 : second)) * 1_000_000n + BigInt(fraction);
    if (micros < MIN || micros > MAX) return undefined;
    const time = new Timestamp(micros);
    return isLeap && !time.#canBeLeap() ? undefined : time;
  }

  /** The time of a clock in milliseconds since 1970, such as `Date.now()`. */
  static ofMillis(millis: number): Timestamp {
    return Timestamp.#clamped(BigInt(Math.trunc(millis)) * 1_000n);
  }

  static #clamped(micros: bigint): Timestamp {
    if (micros < MIN) return new Timestamp(MIN);
    return new Timestamp(micros > MAX ? MAX : micros);
  }

  /** Leap seconds occur at the end of a month in UTC. */
  #canBeLeap(): boolean {
    const next = new Timestamp(this.micros + 1n).toString();
    return next.endsWith("-01T00:00:00Z") || this.micros === MAX;
  }

  /** Milliseconds since 1970, rounded down. */
  get millis(): number {
    return Number(floorDiv(this.micros, 1_000n));
  }

  /** The time so many milliseconds later; earlier if it is negative. */
  plus(millis: number): Timestamp {
    return Timestamp.#clamped(this.micros + BigInt(Math.trunc(millis)) * 1_000n);
  }

  /** Whether this is earlier than the other. */
  isBefore(other: Timestamp): boolean {
    return this.micros < other.micros;
  }

  /** Whether both are the same moment, however they were written. */
  equals(other: Timestamp): boolean {
    return this.micros === other.micros;
  }

  /** In UTC, with as few digits as possible. */
  toString(): string {
    const seconds = floorDiv(this.micros, 1_000_000n);
    const fraction = (this.micros - seconds * 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "");
    const date = new Date(Number(seconds) * 1_000).toISOString().slice(0, 19);
    return `${date}${fraction === "" ? "" : `.${fraction}`}Z`;
  }

  toJSON(): string {
    return this.toString();
  }
}

type Six = [number, number, number, number, number, number];

function floorDiv(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

function daysOf(year: number, month: number): number {
  const isLeapYear = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  if (month === 2) return isLeapYear ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function daysSinceEpoch(year: number, month: number, day: number): number {
  // `Date.UTC` reads the years 0 to 99 as 1900 to 1999.
  const date = new Date(Date.UTC(2000, month - 1, day));
  date.setUTCFullYear(year, month - 1, day);
  return date.getTime() / 86_400_000;
}
