/** The suites that follow pages: `npm run test:system` and so on. */
export type Suite = 'system' | 'cluster' | 'deployed' | 'localstack';

/** The proof that the commands of a page work as described. */
export interface FollowedPage {
  /** The suite that runs each command as it is written; absent: none does. */
  readonly by?: Suite;
  /** The reason for which none of its commands are run. */
  readonly because?: string;
  /** Commands, by their first line, that are not run, with their reasons. */
  readonly except?: Readonly<Record<string, string>>;
}

const ITS_CI = 'what decides whether a change lands runs it, and looks that README says it';
const EKS = 'asks an API server of EKS, which knows tokens that AWS signed';
const CONTROLLERS =
  'npm run test:controllers does the same beside the real controllers; without these nothing is taken over';
const ANOTHER_STACK =
  'would be another deployment; the suite makes one beside, destroys it and deploys it again';
const LEFT_OUT = 'has values left out, of what the account has';
const OWN_CLUSTER = 'how-to/move-to-enforce.md has the same for one cluster, and is followed';
const NPM_START =
  'asks an npm start, and the suite has none; tutorials/simulated-cluster.md asks one, and is followed';
const OTHER_SUITE =
  'tutorials/simulated-cluster.md and how-to/move-to-enforce.md have it with its answer, and are followed';

/**
 * Each page with shell commands. This list contains all commands that are not run. Every other command is run as it is
 * written, so a new command of a page is run, or needs a reason.
 */
export const FOLLOWED_PAGES: Readonly<Record<string, FollowedPage>> = {
  'README.md': {
    except: {
      'npm ci': ITS_CI,
      'npm start': ITS_CI,
      'npm test': ITS_CI,
      'npm start -- --context staging --context production': OWN_CLUSTER,
      'npx cdk bootstrap': 'how-to/install-on-aws.md has it, and is followed',
      'npx cdk deploy': 'how-to/install-on-aws.md has it, and is followed',
      'npx taintward clusters add --help': 'is help',
    },
  },
  'internals/evidence.md': {
    because: 'takes minutes; what decides whether a change lands runs the short forms',
  },
  'tutorials/simulated-cluster.md': { by: 'system' },
  'how-to/move-to-enforce.md': { by: 'cluster' },
  'how-to/install-on-aws.md': {
    by: 'deployed',
    except: {
      'npm ci': ITS_CI,
      'aws iam create-service-linked-role --aws-service-name ecs.amazonaws.com':
        'is refused where that role is, which the page says is fine',
      'npx cdk deploy -c taintward:vpcId=vpc-… -c taintward:subnetIds=subnet-…,subnet-…': LEFT_OUT,
      'AWS_REGION=eu-west-1 npx cdk deploy': ANOTHER_STACK,
      'AWS_REGION=eu-west-1 npx cdk deploy -c taintward:name=staging': ANOTHER_STACK,
      'npx taintward clusters add prod --eks prod --region eu-west-1': EKS,
      'AWS_REGION=… TABLE_NAME=… NODE_DELTAS_URL=… POD_DELTAS_URL=… METRIC_NAMESPACE=… INSTALLATION_NAME=… npm run relay':
        'has values left out; the suite starts a relay by the command that the stack prints',
    },
  },
  'how-to/governed-account.md': {
    because: 'needs what an organization has; the settings and the policy of the page are synthesized',
  },
  'how-to/review-history.md': {
    by: 'deployed',
    except: { 'npx taintward history --state-dir .taintward': NPM_START },
  },
  'how-to/upgrade.md': {
    by: 'deployed',
    except: { 'npm ci': ITS_CI, 'git pull': 'would change what is tested' },
  },
  'how-to/recover.md': {
    by: 'deployed',
    except: {
      'aws sqs start-message-move-task --source-arn "$arn-dlq" --destination-arn "$arn"':
        'the stand-in has no such task',
    },
  },
  'how-to/uninstall.md': {
    by: 'deployed',
    except: { 'npx cdk deploy --import-existing-resources': ANOTHER_STACK },
  },
  'how-to/grant-cluster-access.md': {
    by: 'deployed',
    except: {
      'kubectl apply -k cdk/rbac/admission-policy':
        'npm run test:controllers has the same policies in force, and evicts',
      'npx taintward clusters add NAME --eks CLUSTER --region REGION': EKS,
      'aws cloudformation deploy --stack-name taintward-access --template-file deploy/cluster-access.yaml --capabilities CAPABILITY_NAMED_IAM --parameter-overrides ClusterName=CLUSTER RelayRoleArn=RELAY_ROLE_ARN EvictRoleArn=EVICT_ROLE_ARN ExternalId=EXTERNAL_ID':
        'the stand-in has no access entries in its CloudFormation; test/build evaluates the template',
      'npx taintward clusters add NAME --eks CLUSTER --region REGION --external-id EXTERNAL_ID \\': EKS,
      'npx cdk deploy -c taintward:vpcId=vpc-… -c taintward:subnetIds=subnet-…,subnet-…': LEFT_OUT,
      'aws ec2 authorize-security-group-ingress --group-id "$cluster_group" --protocol tcp --port 443 --source-group SECURITY_GROUP':
        LEFT_OUT,
      'npx cdk deploy -c taintward:staticEgressIps=true': 'the stand-in makes no NAT gateways',
      'aws eks update-cluster-config --name CLUSTER \\': LEFT_OUT,
    },
  },
  'reference/notifications.md': { by: 'deployed' },
  'how-to/install-by-cloudformation.md': {
    by: 'localstack',
    except: {
      'gh release download v0.2.0 --repo taintward/taintward':
        'nothing is published; the suite creates the files',
      'aws cloudformation deploy --stack-name taintward --template-file taintward-aws.template.json --s3-bucket "$bucket" --capabilities CAPABILITY_NAMED_IAM --parameter-overrides CodeBucket="$bucket"':
        'LocalStack runs no containers; the suite deploys it with Relay=external',
      "aws cloudformation describe-stacks --stack-name taintward --query 'Stacks[0].Outputs' --output table":
        'is the same with relays of your own, and is followed there',
      'docker run --env-file relay.env ghcr.io/taintward/taintward:0.2.0':
        'needs Docker; the suite runs the program of the image with these variables',
    },
  },
  'tutorials/localstack.md': { by: 'localstack', except: { 'npm ci': ITS_CI } },
  'how-to/stop-and-hold.md': {
    by: 'deployed',
    except: {
      "npx taintward release guard prod --reason 'these nodes are dead for certain' --dry-run":
        'no guard has tripped; test/unit/cli/dry-run.test.ts previews the release of one that has',
      "npx taintward release guard prod --reason 'these nodes are dead for certain'":
        'no guard has tripped; npm run test:controllers releases one that has',
    },
  },
  'reference/policy.md': {
    by: 'deployed',
    except: {
      'npm start -- --context staging --enforce': OWN_CLUSTER,
      'npm start -- --context staging --policy policy.yaml': OWN_CLUSTER,
      'npx taintward --state-dir .taintward policy apply -f policy.yaml staging': NPM_START,
    },
  },
  'how-to/replace-built-in-controller.md': { because: CONTROLLERS },
  'how-to/use-console.md': {
    because: 'serves until it is ended; npm run test:console opens the console and clicks',
  },
  'how-to/investigate-evictions.md': { because: OTHER_SUITE },
  'concepts/isolation.md': {
    because: 'one command, which deploys what an agent has; its template is tested, and the agent run',
  },
  'how-to/run-an-agent.md': {
    because: 'needs what an agent has in AWS; npm run test:deployed does the same with one',
  },
  'concepts/high-availability.md': {
    because: 'npm run test:chart installs the same, in a namespace of its own',
  },
  'how-to/install-in-cluster.md': { because: 'npm run test:in-cluster installs and removes the same' },
  'how-to/monitor.md': { because: 'needs a Prometheus; npm run test:prometheus asks one of what is served' },
  'internals/benchmarks.md': {
    because: 'takes minutes, and what it says differs from run to run; CI runs the short form',
  },
  'how-to/query-evictions.md': {
    because: 'asks Logs Insights; npm run test:build reads each query, and the fields that it names',
  },
  'reference/quotas-and-costs.md': { because: 'raises a throughput for which DynamoDB alone has a price' },
  'reference/simulated-cluster.md': { because: 'what decides whether a change lands tries kubectl on it' },
  'how-to/manage-as-code.md': {
    because: 'test/system/cli/apply.test.ts runs the same on a service, twice',
  },
  'how-to/preview-a-taint.md': { because: OTHER_SUITE },
  'how-to/verify-release.md': {
    because: 'publishes, or asks what is published; npm run test:release tries the rest',
  },
  'how-to/migrate-a-deployment.md': {
    because: 'needs a second deployment beside the first; its parts are tried, as the page says, one by one',
  },
  'internals/release-checklist.md': { because: 'needs a real account: that is what it is for' },
};

/** Reports whether a suite runs a command of a page. */
export function isFollowed(page: string, command: string, suite: Suite): boolean {
  const { by: followedBy, except = {} } = FOLLOWED_PAGES[page] ?? {};
  return followedBy === suite && !(command in except);
}
