# The public names: all that a DAG's author uses, and nothing else. `__init__.py` reads this file.

from airflow_kstream.hooks.cluster import KstreamClusterHook as KstreamClusterHook
from airflow_kstream.hooks.kerberos import KerberosHook as KerberosHook
from airflow_kstream.model.airflow_options import NotifyPolicy as NotifyPolicy
from airflow_kstream.model.secrets import SecretRef as SecretRef
from airflow_kstream.model.streams.deploy import Deploy as Deploy
from airflow_kstream.model.streams.deploy import FlinkDeploy as FlinkDeploy
from airflow_kstream.model.streams.deploy import Savepoints as Savepoints
from airflow_kstream.model.streams.stream import FlinkStreamSpec as FlinkStreamSpec
from airflow_kstream.model.streams.stream import KeytabCredentials as KeytabCredentials
from airflow_kstream.model.streams.stream import OnChange as OnChange
from airflow_kstream.model.streams.stream import ProxyUserCredentials as ProxyUserCredentials
from airflow_kstream.model.streams.stream import StreamSpec as StreamSpec
from airflow_kstream.model.streams.stream import TicketCredentials as TicketCredentials
from airflow_kstream.model.streams.stream_policies import FailurePolicy as FailurePolicy
from airflow_kstream.model.streams.stream_policies import HeartbeatPolicy as HeartbeatPolicy
from airflow_kstream.model.streams.stream_policies import KafkaPolicy as KafkaPolicy
from airflow_kstream.model.streams.stream_policies import KafkaProtocol as KafkaProtocol
from airflow_kstream.model.streams.stream_policies import OnStall as OnStall
from airflow_kstream.model.streams.stream_policies import RefreshPolicy as RefreshPolicy
from airflow_kstream.model.streams.stream_policies import RestartPolicy as RestartPolicy
from airflow_kstream.model.streams.stream_policies import StopPolicy as StopPolicy
from airflow_kstream.model.streams.stream_policies import SubmitPolicy as SubmitPolicy
from airflow_kstream.model.streams.stream_policies import WatchPolicy as WatchPolicy
from airflow_kstream.notifications.triage import TriageNotifier as TriageNotifier
from airflow_kstream.operators.cluster_doctor import ClusterDoctorOperator as ClusterDoctorOperator
from airflow_kstream.operators.housekeeping import HousekeepingOperator as HousekeepingOperator
from airflow_kstream.operators.leases import HdfsLeaseRecoverOperator as HdfsLeaseRecoverOperator
from airflow_kstream.operators.stream_control import StreamControlOperator as StreamControlOperator
from airflow_kstream.operators.streams import FlinkStreamOperator as FlinkStreamOperator
from airflow_kstream.operators.streams import SparkStreamOperator as SparkStreamOperator
from airflow_kstream.operators.tickets import KerberosTicketRenewOperator as KerberosTicketRenewOperator
from airflow_kstream.operators.tickets import KeytabCheckOperator as KeytabCheckOperator
from airflow_kstream.operators.token_push import DelegationTokenPushOperator as DelegationTokenPushOperator
from airflow_kstream.operators.triage import LogTriageOperator as LogTriageOperator
from airflow_kstream.sensors.leases import HdfsOpenFileSensor as HdfsOpenFileSensor
from airflow_kstream.sensors.progress import StreamProgressSensor as StreamProgressSensor
from airflow_kstream.sensors.tickets import KerberosTicketExpirySensor as KerberosTicketExpirySensor
from airflow_kstream.sensors.tokens import DelegationTokenExpirySensor as DelegationTokenExpirySensor
from airflow_kstream.triggers.events import StreamEventTrigger as StreamEventTrigger
from airflow_kstream.triggers.leases import OpenFileEventTrigger as OpenFileEventTrigger

__version__: str
