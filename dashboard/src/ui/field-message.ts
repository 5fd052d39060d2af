/** Error messages of a field, without the wording of the JSON parser. */

/** The parser reports the value, which the field shows already, and then what it expected. */
const PARSED = /(?:invalid (?:type|value|length): |unknown variant )[\s\S]*, expected ([\s\S]+)$/;
const POSITION = / at line \d+ column \d+$/;

/** ``invalid value: integer `-5`, expected a whole number`` becomes `must be a whole number`; others stay unchanged. */
export function fieldMessage(detail: string): string {
  return detail.replace(PARSED, (_, expected: string) => `must be ${expected.replace(POSITION, "")}`);
}
