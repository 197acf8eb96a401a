// What lies below HLO: the code of each kernel, as explorer/files/machine_code.py writes it.

import type { Place } from "../core/wire";

interface Row {
  function: string;
  /** The instructions that run it. */
  kernels: string[];
  texts: Record<string, Place>;
  /** What is known of it, in words. */
  facts: [name: string, text: string][];
}

export type MachineCodeHeader = { platform: string; notes: string[]; languages: Record<string, string>; rows: Row[] };

export class MachineCode {
  constructor(
    readonly header: MachineCodeHeader,
    private readonly blobs: Uint8Array,
  ) {}

  /** The languages of a row, what is nearest to the hardware first. */
  languages(row: number): string[] {
    const { texts } = this.header.rows[row]!;
    return Object.keys(this.header.languages)
      .filter((language) => texts[language])
      .reverse();
  }

  lines(row: number, language: string): string[] {
    const [offset, size] = this.header.rows[row]!.texts[language]!;
    return new TextDecoder().decode(this.blobs.subarray(offset, offset + size)).split("\n");
  }
}
