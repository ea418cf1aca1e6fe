"""Python runs this at the start of MiniStack, whose CloudWatch has composite alarms, but not its CloudFormation."""

from ministack.services import cloudwatch
from ministack.services.cloudformation import provisioners


def put(_logical_id, properties, _stack_name):
    name = properties['AlarmName']
    status, _, body = cloudwatch._put_composite_alarm({}, properties, False, True)
    if status != 200:
        raise ValueError(body)
    return name, {'Arn': cloudwatch._composite_alarms[name]['AlarmArn']}


provisioners._RESOURCE_HANDLERS['AWS::CloudWatch::CompositeAlarm'] = {
    'create': put,
    'update': lambda _name, _old, properties, stack_name: put(None, properties, stack_name),
    'delete': lambda name, _properties: cloudwatch._composite_alarms.pop(name, None),
}
