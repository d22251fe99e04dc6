/** What all definitions have in common: one of them, its versions, saving another, and the way back. */
import { graphql, type ResultOf } from '../api/graphql';

const Gate = {
  one: graphql(`
    query Gate($name: String!, $version: Int) {
      found: gate(name: $name, version: $version) {
        name
        version
        createdAt
        createdBy
        definition
      }
    }
  `),
  versions: graphql(`
    query GateVersions($name: String!) {
      versions: gateVersions(name: $name) {
        version
        removed
        createdAt
        createdBy
      }
    }
  `),
  define: graphql(`
    mutation DefineGate($definition: JSON!, $expectedVersion: Int) {
      defined: defineGate(definition: $definition, expectedVersion: $expectedVersion) {
        name
        version
      }
    }
  `),
  rollBack: graphql(`
    mutation RollBackGate($name: String!, $version: Int!) {
      defined: rollBackGate(name: $name, version: $version) {
        name
        version
      }
    }
  `),
};

const Rule = {
  one: graphql(`
    query Rule($name: String!, $version: Int) {
      found: rule(name: $name, version: $version) {
        name
        version
        createdAt
        createdBy
        definition
      }
    }
  `),
  versions: graphql(`
    query RuleVersions($name: String!) {
      versions: ruleVersions(name: $name) {
        version
        removed
        createdAt
        createdBy
      }
    }
  `),
  define: graphql(`
    mutation DefineRule($definition: JSON!, $expectedVersion: Int) {
      defined: defineRule(definition: $definition, expectedVersion: $expectedVersion) {
        name
        version
      }
    }
  `),
  rollBack: graphql(`
    mutation RollBackRule($name: String!, $version: Int!) {
      defined: rollBackRule(name: $name, version: $version) {
        name
        version
      }
    }
  `),
};

const Agent = {
  one: graphql(`
    query Agent($name: String!, $version: Int) {
      found: agent(name: $name, version: $version) {
        name
        version
        createdAt
        createdBy
        definition
      }
    }
  `),
  versions: graphql(`
    query AgentVersions($name: String!) {
      versions: agentVersions(name: $name) {
        version
        removed
        createdAt
        createdBy
      }
    }
  `),
  define: graphql(`
    mutation DefineAgent($definition: JSON!, $expectedVersion: Int) {
      defined: defineAgent(definition: $definition, expectedVersion: $expectedVersion) {
        name
        version
      }
    }
  `),
  rollBack: graphql(`
    mutation RollBackAgent($name: String!, $version: Int!) {
      defined: rollBackAgent(name: $name, version: $version) {
        name
        version
      }
    }
  `),
};

const Graph = {
  one: graphql(`
    query Graph($name: String!, $version: Int) {
      found: graph(name: $name, version: $version) {
        name
        version
        createdAt
        createdBy
        definition
      }
    }
  `),
  versions: graphql(`
    query GraphVersions($name: String!) {
      versions: graphVersions(name: $name) {
        version
        removed
        createdAt
        createdBy
      }
    }
  `),
  define: graphql(`
    mutation DefineGraph($definition: JSON!, $expectedVersion: Int) {
      defined: defineGraph(definition: $definition, expectedVersion: $expectedVersion) {
        name
        version
      }
    }
  `),
  rollBack: graphql(`
    mutation RollBackGraph($name: String!, $version: Int!) {
      defined: rollBackGraph(name: $name, version: $version) {
        name
        version
      }
    }
  `),
};

const Playbook = {
  one: graphql(`
    query Playbook($name: String!, $version: Int) {
      found: playbook(name: $name, version: $version) {
        name
        version
        createdAt
        createdBy
        definition
      }
    }
  `),
  versions: graphql(`
    query PlaybookVersions($name: String!) {
      versions: playbookVersions(name: $name) {
        version
        removed
        createdAt
        createdBy
      }
    }
  `),
  define: graphql(`
    mutation DefinePlaybook($definition: JSON!, $expectedVersion: Int) {
      defined: definePlaybook(definition: $definition, expectedVersion: $expectedVersion) {
        name
        version
      }
    }
  `),
  rollBack: graphql(`
    mutation RollBackPlaybook($name: String!, $version: Int!) {
      defined: rollBackPlaybook(name: $name, version: $version) {
        name
        version
      }
    }
  `),
};

const Pipeline = {
  one: graphql(`
    query Pipeline($name: String!, $version: Int) {
      found: pipeline(name: $name, version: $version) {
        name
        version
        createdAt
        createdBy
        definition
      }
    }
  `),
  versions: graphql(`
    query PipelineVersions($name: String!) {
      versions: pipelineVersions(name: $name) {
        version
        removed
        createdAt
        createdBy
      }
    }
  `),
  define: graphql(`
    mutation DefinePipeline($definition: JSON!, $expectedVersion: Int) {
      defined: definePipeline(definition: $definition, expectedVersion: $expectedVersion) {
        name
        version
      }
    }
  `),
  rollBack: graphql(`
    mutation RollBackPipeline($name: String!, $version: Int!) {
      defined: rollBackPipeline(name: $name, version: $version) {
        name
        version
      }
    }
  `),
};

export type Definition = NonNullable<ResultOf<typeof Gate.one>['found']>;
export type Version = NonNullable<ResultOf<typeof Gate.versions>['versions']>[number];

/** They all have the same shape: that of gates is as good as any. */
export type Documents = typeof Gate;

export const KINDS = {
  gate: Gate,
  rule: Rule,
  agent: Agent,
  graph: Graph,
  playbook: Playbook,
  pipeline: Pipeline,
} as unknown as Record<'gate' | 'rule' | 'agent' | 'graph' | 'playbook' | 'pipeline', Documents>;

export type Kind = keyof typeof KINDS;

export function isKind(text: string): text is Kind {
  return Object.hasOwn(KINDS, text);
}
