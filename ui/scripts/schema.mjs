// Writes the types that the documents in src/services are checked against, from the server's own schema.
import { minifyIntrospection, outputIntrospectionFile } from '@gql.tada/internal';
import { buildSchema, introspectionFromSchema } from 'graphql';
import { readFileSync, writeFileSync } from 'node:fs';

const from = new URL('../../src/ostinato/api/graphql/schema.graphql', import.meta.url);
const to = new URL('../src/graphql-env.d.ts', import.meta.url);

const introspection = introspectionFromSchema(buildSchema(readFileSync(from, 'utf8')));
writeFileSync(
    to,
    outputIntrospectionFile(minifyIntrospection(introspection), {
        fileType: '.d.ts',
        shouldPreprocess: true,
    }),
);
