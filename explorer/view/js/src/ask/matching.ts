// Which question a person means, as explorer/analysis/question_catalogue.py has it: both are held to questions.json.

export type Question = [key: string, title: string, words: string[], hints: string[]];

const SILENT = new Set(
  (
    "a an the it its this that these those my your our i me you we there here any some one is are was were be been " +
    "do does did has have had can could would will not no please of in on at to for from by with and or what which " +
    "who where when how why if so as all out up"
  ).split(" "),
);

/** The words of what a person typed, in small letters. */
export const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .replaceAll("’", "'")
    .replaceAll("n't", " not")
    .replaceAll("'s ", " ")
    .replace(/[^\p{L}\p{N}_×*.]/gu, " ")
    .split(/\s+/)
    .map((word) => word.replace(/^[._*]+|[._*]+$/g, ""))
    .filter(Boolean);

/** The questions that have a word of a text, the likeliest first, each with its score. */
export function rank(text: string, questions: Question[], extra: (word: string) => boolean): [number, Question][] {
  const words = new Set(wordsOf(text));
  const scored: [number, Question][] = [];
  for (const question of questions) {
    let [score, strong, foreign, known] = [0, 0, 0, 0];
    for (const word of words) {
      const [own, hint] = [likeness(word, question[2]), likeness(word, question[3])];
      strong = Math.max(strong, own);
      if (own || hint) {
        score += Math.max(own * 2, hint) - (Math.max(own, hint) < 1 && own > 0 ? 0.5 : 0);
        known++;
      } else if (!SILENT.has(word) && !extra(word) && !/^\d+$/.test(word)) foreign++;
    }
    if (strong && foreign <= known) scored.push([score, question]);
  }
  return scored.sort(([a], [b]) => b - a);
}

/** 1 for one of some words, 0.75 for one that is written almost like one, 0 for none. */
function likeness(word: string, words: string[]): number {
  if (words.includes(word)) return 1;
  const slack = slackOf(word);
  return slack && words.some((other) => distance(word, other, slack) <= slack) ? 0.75 : 0;
}

const slackOf = ({ length }: string): number => (length < 5 ? 0 : length < 9 ? 1 : 2);

/** How many letters have to be changed, left out, put in or swapped; above `most`, any number. */
export function distance(word: string, other: string, most: number): number {
  if (Math.abs(word.length - other.length) > most) return most + 1;
  let before: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, j) => j);
  for (let i = 1; i <= word.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (word[i - 1] === other[j - 1] ? 0 : 1));
      if (i > 1 && j > 1 && word[i - 1] === other[j - 2] && word[i - 2] === other[j - 1])
        row[j] = Math.min(row[j]!, before[j - 2]! + 1);
    }
    [before, last] = [last, row];
  }
  return last[other.length]!;
}

/** The name that is written most like a word; undefined where none is near. */
export function nearest(word: string, names: Iterable<string>): string | undefined {
  const small = word.toLowerCase();
  let [best, least] = [undefined as string | undefined, Math.max(slackOf(word), word.length > 2 ? 1 : 0) + 1];
  for (const name of names) {
    const far = distance(small, name.toLowerCase(), least - 1);
    if (far && far < least) [best, least] = [name, far];
  }
  return best;
}
