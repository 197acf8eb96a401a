// Which question a person means, as explorer/analysis/question_catalogue.py has it: both are held to questions.json.

export type Question = [key: string, title: string, words: string[], hints: string[], slots: string[]];

/** A question that a text may mean, and the words that it can't use: with any, another one is meant. */
export type Match = { score: number; question: Question; unused: string[] };

export const LINE = /\blines?\s*(\d+)/i;

/** The words of what a person typed, in small letters. */
export const wordsOf = (text: string): string[] =>
  text
    .toLowerCase()
    .replaceAll("’", "'")
    .replaceAll("n't", " not")
    .replaceAll("'s ", " ")
    .replace(/[^\p{L}\p{N}_×*.-]/gu, " ")
    .split(/\s+/)
    .map((word) => word.replace(/^[._*-]+|[._*-]+$/g, ""))
    .filter(Boolean);

/** The questions that share a word with a text: those that use all of its words first, the likeliest before others. */
export function rank(
  text: string,
  questions: Question[],
  silent: ReadonlySet<string>,
  isName: (word: string) => boolean,
): Match[] {
  const asked = text.toLowerCase().replace(/ \(say.*/, ""); // as titles end
  const words = new Set(wordsOf(asked.replace(LINE, " ")));
  const line = LINE.exec(asked)?.[0];
  const matches: Match[] = [];
  for (const question of questions) {
    let [score, strong] = [0, 0];
    const [, , keywords, hints, slots] = question;
    const unused = line && !slots.includes("line") ? [line] : [];
    for (const word of words) {
      const [own, hint] = [likeness(word, keywords), likeness(word, hints)];
      strong = Math.max(strong, own);
      if (own || hint) score += Math.max(own * 2, hint) - (Math.max(own, hint) < 1 && own > 0 ? 0.5 : 0);
      else if (!silent.has(word) && !(slots.includes("name") && isName(word))) unused.push(word);
    }
    if (strong) matches.push({ score, question, unused });
  }
  return matches.sort((a, b) => a.unused.length - b.unused.length || b.score - a.score);
}

/** The one question that uses all words and is the likeliest; undefined where none does, or two are as likely. */
export function meant(matches: Match[]): Question | undefined {
  const [first, second] = matches.filter(({ unused }) => !unused.length);
  return first && first.score !== second?.score ? first.question : undefined;
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
