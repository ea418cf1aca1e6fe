import { Stack, Validations } from 'aws-cdk-lib';
import {
  GatewayVpcEndpointAwsService,
  type ISubnet,
  type IVpc,
  Peer,
  Port,
  SecurityGroup,
  Subnet,
  SubnetType,
  Vpc,
} from 'aws-cdk-lib/aws-ec2';
import { Construct } from 'constructs';
import type { Config } from './config.ts';

/** Where the relay runs. */
export class Network extends Construct {
  readonly vpc: IVpc;
  readonly subnets: ISubnet[];
  /** Whether the subnets are ours and public, so that tasks need addresses of their own. */
  readonly isPublic: boolean;
  /** Nobody calls in, everything is called: clusters may listen on any port. */
  readonly securityGroup: SecurityGroup;

  constructor(scope: Construct, id: string, { vpcId, subnetIds }: Pick<Config, 'vpcId' | 'subnetIds'>) {
    super(scope, id);
    this.isPublic = vpcId === undefined;
    this.vpc = vpcId === undefined ? this.#smallVpc() : this.#given(vpcId);
    this.subnets = subnetIds
      ? subnetIds.map((subnetId) => Subnet.fromSubnetId(this, subnetId, subnetId))
      : this.vpc.publicSubnets;
    this.securityGroup = new SecurityGroup(this, 'SecurityGroup', {
      vpc: this.vpc,
      description: 'Taintward: no way in, every way out.',
      allowAllOutbound: false,
    });
    this.securityGroup.addEgressRule(Peer.anyIpv4(), Port.allTcp(), 'API servers and the AWS APIs');
  }

  /** Two public subnets, no NAT: the relay has nothing to hide but its own doors, and those are shut. */
  #smallVpc(): IVpc {
    const vpc = new Vpc(this, 'Vpc', {
      maxAzs: 2,
      natGateways: 0,
      subnetConfiguration: [{ name: 'relay', subnetType: SubnetType.PUBLIC, cidrMask: 26 }],
      // By a function of the CDK's own, with more rights than all of ours.
      restrictDefaultSecurityGroup: false,
    });
    vpc.addGatewayEndpoint('Table', { service: GatewayVpcEndpointAwsService.DYNAMODB });
    Validations.of(vpc).acknowledge({
      id: 'AwsSolutions-VPC7',
      reason:
        'Nothing but the relay runs here, which takes no connections and logs what it calls; a flow log would cost more than the relay.',
    });
    // The CDK is not written for exactOptionalPropertyTypes: an optional property of the interface is undefined here.
    return vpc as IVpc;
  }

  #given(vpcId: string): IVpc {
    const { availabilityZones } = Stack.of(this);
    return Vpc.fromVpcAttributes(this, 'Vpc', { vpcId, availabilityZones });
  }
}
