// Types parsed from any stage's notation; see explorer/model/types.py.

import { made } from "./buckets";

export interface ArrayType {
  dtype: string;
  /** As written: a dynamic one keeps its `<=`, a symbolic one its name, a split one its axes, `32@data`. */
  dims: string[];
}

const ARRAY = /([a-zA-Z]\w*)\[([^\]]*)\]|tensor<((?:(?:\d+|\?)x)*)([^<>,]*(?:<[^<>]*>)?)/g;
const BITS: Record<string, number> = { pred: 8, bool: 8, i1: 8, token: 0, index: 64 };

const parsedTypes = new Map<string, ArrayType[]>();

export function arrays(type: string): ArrayType[] {
  return made(parsedTypes, type, () =>
    Array.from(type.matchAll(ARRAY), ([, name, dims, tensorDims, tensor]) => {
      const parts = name === undefined ? tensorDims!.split("x").slice(0, -1) : dims!.split(/,(?![^()]*\))/);
      return { dtype: name ?? tensor!, dims: parts.map((dim) => dim.trim()).filter(Boolean) };
    }),
  );
}

const bound = (dim: string): number => Number(/^(?:<=)?(\d+)(?:@|$)/.exec(dim)?.[1] ?? 1);
const sizeOf = ({ dims }: ArrayType): number => dims.reduce((all, dim) => all * bound(dim), 1);

/** How many elements the first array of a type has: layouts and transposes keep that. */
export function elements(type: string): number {
  const [first] = arrays(type);
  return first ? sizeOf(first) : 1;
}

/** Bytes of all arrays in a type; a dimension without a number counts as 1, a bounded one as its bound. */
export function bytesOf(type: string): number {
  return Math.ceil(arrays(type).reduce((all, array) => all + bitsOf(array.dtype) * sizeOf(array), 0) / 8);
}

function bitsOf(dtype: string): number {
  const complex = /^complex<f(\d+)>/.exec(dtype);
  return BITS[dtype] ?? (complex ? 2 * Number(complex[1]) : Number(/^[a-z]+(\d+)/.exec(dtype)?.[1] ?? 0));
}
