/** What the service says of a field, without the words of its parser. */

/** The parser tells what it found, which stands in the field, and then what it expected. */
const PARSED = /(?:invalid (?:type|value|length): |unknown variant )[\s\S]*, expected ([\s\S]+)$/;
const POSITION = / at line \d+ column \d+$/;

/** ``invalid value: integer `-5`, expected a whole number`` is `needs a whole number`; what is plain stays as it is. */
export function fieldMessage(detail: string): string {
  return detail.replace(PARSED, (_, expected: string) => `needs ${expected.replace(POSITION, "")}`);
}
