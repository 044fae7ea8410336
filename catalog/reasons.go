// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/olmcore/olm/catalog/internal/registry"

// Types of the conditions in status.conditions that Reconcile owns. It does not change conditions of other types.
const (
	// ConditionAvailable says whether a registry Pod serves or, for an address, whether the client is connected. The
	// message lists the Pods and their Nodes.
	ConditionAvailable = "Available"
	// ConditionProgressing says whether Pods are being started, replaced or rolled out. If it is False, the reason
	// says why nothing is under way.
	ConditionProgressing = "Progressing"
	// ConditionDegraded says whether something needs attention. The message lists everything that does.
	ConditionDegraded = "Degraded"
	// ConditionConnected is only present while a client has no connection although it should have one. It is False,
	// and the message says how the failure began.
	ConditionConnected = "Connected"
	// ConditionUpdatePolled reports the result of the last poll of the image. It is absent if the spec does not ask for
	// polls.
	ConditionUpdatePolled = "UpdatePolled"
	// ConditionReplicasSpread says whether several replicas are spread over as many Nodes as possible. It is absent
	// for one replica.
	ConditionReplicasSpread = "ReplicasSpread"
)

// Reasons of ConditionAvailable, and of ConditionProgressing while nothing can be done. Some are also reasons of
// ConditionDegraded and of Diagnostics.
const (
	// ReasonRegistryServing means that a registry Pod is ready.
	ReasonRegistryServing = "RegistryServing"
	// ReasonConnectionReady means that the registry at spec.address answers.
	ReasonConnectionReady = "ConnectionReady"
	// ReasonConnecting means that it is not known yet whether the registry at spec.address answers. Wait.
	ReasonConnecting = "Connecting"
	// ReasonConnectionFailed means that the client cannot connect to the registry. Check spec.address,
	// NetworkPolicies and DNS.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonNoReadyPods means that no registry Pod is ready. The conditions Progressing and Degraded say what is done
	// about it.
	ReasonNoReadyPods = "NoReadyPods"
	// ReasonSpecInvalid means that the spec is invalid. Correct the field that the message names.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonPollIntervalInvalid means that the polling interval cannot be used. Correct
	// spec.updateStrategy.registryPoll.interval.
	ReasonPollIntervalInvalid = "PollIntervalInvalid"
	// ReasonDeleting means that the CatalogSource or its namespace is being deleted. No objects are created any more.
	ReasonDeleting = "Deleting"
	// ReasonNamespaceUnknown means that the Namespace object was not found or not read, so the security context of the
	// Pods is unknown. Wait until the cache contains the Namespace, or set spec.grpcPodConfig.securityContextConfig.
	ReasonNamespaceUnknown = "NamespaceUnknown"
	// ReasonConfigMapMissing means that the ConfigMap in spec.configMap does not exist. Create it. Pods that serve
	// already continue to serve.
	ReasonConfigMapMissing = "ConfigMapMissing"
)

// Reasons of ConditionReplicasSpread.
const (
	// ReasonSpread means that the replicas are on as many Nodes as possible.
	ReasonSpread = "Spread"
	// ReasonCoLocated means that replicas share a Node although another Node could run one of them. Their next
	// replacement corrects it.
	ReasonCoLocated = "CoLocated"
	// ReasonNodesUnknown means that the Nodes were not read.
	ReasonNodesUnknown = "NodesUnknown"
)

// Reasons of ConditionUpdatePolled.
const (
	// ReasonUpToDate means that the last poll found the content that is served.
	ReasonUpToDate = "UpToDate"
	// ReasonUpdatePromoted means that the last poll found newer content, which is served now.
	ReasonUpdatePromoted = "UpdatePromoted"
	// ReasonCandidateFailed means that the Pod of the last poll crashed or could not start. Check the image. The Pods
	// that serve keep their content.
	ReasonCandidateFailed = "CandidateFailed"
	// ReasonCandidateTimedOut means that the Pod of the last poll did not become ready in time. Check the image. The
	// Pods that serve keep their content.
	ReasonCandidateTimedOut = "CandidateTimedOut"
	// ReasonNeverPolled means that no poll has ended yet. Wait.
	ReasonNeverPolled = "NeverPolled"
	// ReasonPollingDisabled means that spec.updateStrategy has no effect on a catalog without an image. Remove it.
	ReasonPollingDisabled = "PollingDisabled"
	// ReasonImagePinnedByDigest means that the image is not polled, because an image with a digest cannot change. Use
	// a tag, or remove spec.updateStrategy.
	ReasonImagePinnedByDigest = "ImagePinnedByDigest"
)

// Reasons of ConditionProgressing.
const (
	// ReasonInitialRollout means that the first Pods are starting. Wait.
	ReasonInitialRollout = "InitialRollout"
	// ReasonSpecRollout means that Pods of the new spec replace those of the old spec. Wait.
	ReasonSpecRollout = "SpecRollout"
	// ReasonContentUpdate means that Pods with newer content of the same image replace the others. Wait.
	ReasonContentUpdate = "ContentUpdate"
	// ReasonNodeFailover means that Pods of a failed Node are being replaced. Wait.
	ReasonNodeFailover = "NodeFailover"
	// ReasonRefill means that missing Pods are being replaced. Wait.
	ReasonRefill = "Refill"
	// ReasonComplete means that as many Pods are ready as configured.
	ReasonComplete = "Complete"
	// ReasonBackOff means that a Pod failed and the next attempt waits. Check the logs of the Pod.
	ReasonBackOff = "BackOff"
	// ReasonProgressDeadlineExceeded means that the new Pods did not become ready in time. The old Pods continue to
	// serve. Check the new Pods, or undo the change of the spec.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonWaitingForNodes means that a Node does not answer, or no Node is usable. Pods are replaced once the
	// grace period of the Node is over.
	ReasonWaitingForNodes = "WaitingForNodes"
	// ReasonPodRejected means that the API server rejected the next Pod. The next attempt waits. Correct what the
	// message names. ConditionDegraded has this reason, too.
	ReasonPodRejected = "PodRejected"
)

// Reasons of ConditionDegraded.
const (
	// ReasonAsExpected means that nothing needs attention.
	ReasonAsExpected = "AsExpected"
	// ReasonReplicasUnavailable means that fewer Pods are ready than configured, and no other cause is known
	// yet. It usually passes.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
	// ReasonNodeLost means that Pods are lost because of their Node. The Pods are replaced. Repair the Node.
	ReasonNodeLost = "NodeLost"
	// ReasonPodUnschedulable means that no Node can run the Pod. Add capacity, or relax spec.grpcPodConfig.
	ReasonPodUnschedulable = "PodUnschedulable"
	// ReasonImagePullFailed means that a Node cannot pull the image. Check the name of the image, its registry and
	// spec.secrets.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonCrashLooping means that the registry crashes repeatedly. Check the logs of the Pod.
	ReasonCrashLooping = "CrashLooping"
	// ReasonStuckTerminating means that a deleted Pod still exists. Either its deletion is overdue although its Node
	// was not lost, or it has finished and a finalizer keeps it. Its replacement does not wait for it.
	ReasonStuckTerminating = "StuckTerminating"
	// ReasonForeignPod means that a Pod with the labels of the catalog does not belong to it and may answer its
	// clients. Delete the Pod, or remove its labels.
	ReasonForeignPod = "ForeignPod"
	// ReasonNameConflict means that an object with a name that the catalog needs is unmanaged or owned by another. It
	// is not changed. Rename one of the two.
	ReasonNameConflict = "NameConflict"
	// ReasonMassDisruption means that so many Nodes fail at once that the control plane may be the cause.
	// Replacements are limited until the Nodes recover.
	ReasonMassDisruption = "MassDisruption"
)

// Reasons of Diagnostics only.
const (
	// ReasonAddressIgnored means that spec.address has no effect beside spec.image. Remove it.
	ReasonAddressIgnored = "AddressIgnored"
	// ReasonPodConfigIgnored means that spec.grpcPodConfig.extractContent has no effect on a ConfigMap. Remove it.
	ReasonPodConfigIgnored = "PodConfigIgnored"
	// ReasonPodConfigUnusual means that a field of spec.grpcPodConfig has a valid value that is rarely intended.
	// Check the field.
	ReasonPodConfigUnusual = "PodConfigUnusual"
	// ReasonInvalidInput means that the Input of Assess is invalid. Correct the field that the message names.
	ReasonInvalidInput = "InvalidInput"
	// ReasonNotRead means that the objects of a kind were not read, and none of them is created. Let the Reader
	// read the kind.
	ReasonNotRead = "NotRead"
	// ReasonServiceAccountShared means that the ServiceAccount with the name of the catalog is unmanaged or owned by
	// another. It is used as it is. Add the pull secrets yourself.
	ReasonServiceAccountShared = "ServiceAccountShared"
	// ReasonHAConfigInvalid means that an annotation has an invalid value, and the default is used. Correct the
	// annotation.
	ReasonHAConfigInvalid = "HAConfigInvalid"
)

// Reasons of actions (Cause.Reason). Reasons of conditions are used, too.
const (
	// ReasonPodMissing means that fewer Pods exist than configured.
	ReasonPodMissing = "PodMissing"
	// ReasonPodTerminating means that the Pod is being deleted.
	ReasonPodTerminating = "PodTerminating"
	// ReasonPodTerminated means that the Pod has finished.
	ReasonPodTerminated = "PodTerminated"
	// ReasonPodStuck means that the Pod does not start on its Node.
	ReasonPodStuck = "PodStuck"
	// ReasonPodOutdated means that the Pod was created from another spec.
	ReasonPodOutdated = "PodOutdated"
	// ReasonPodDisrupted means that the Pod is about to be evicted.
	ReasonPodDisrupted = "PodDisrupted"
	// ReasonPodSurplus means that better Pods serve.
	ReasonPodSurplus = "PodSurplus"
	// ReasonPodKept means that the Pod is recorded as the one that stays, before other Pods that serve are deleted.
	ReasonPodKept = "PodKept"
	// ReasonPodReplaced means that a replacement of the lost Pod serves.
	ReasonPodReplaced = "PodReplaced"
	// ReasonContentDiffers means that other Pods serve newer content of the same image.
	ReasonContentDiffers = "ContentDiffers"
	// ReasonCandidateReady means that the Pod takes over.
	ReasonCandidateReady = "CandidateReady"
	// ReasonCandidateObsolete means that the Pod is not needed as a replacement any more.
	ReasonCandidateObsolete = "CandidateObsolete"
	// ReasonPollDue means that the next poll of the image is due.
	ReasonPollDue = "PollDue"
	// ReasonObjectMissing means that an object that the catalog needs does not exist.
	ReasonObjectMissing = registry.ReasonObjectMissing
	// ReasonObjectDiffers means that an object differs from the one that the catalog needs.
	ReasonObjectDiffers = registry.ReasonObjectDiffers
	// ReasonBudgetObsolete means that one replica needs no PodDisruptionBudget.
	ReasonBudgetObsolete = registry.ReasonBudgetObsolete
	// ReasonSourceTypeChanged means that only a former source type needed the object.
	ReasonSourceTypeChanged = "SourceTypeChanged"
	// ReasonStatusChanged means that the recorded status differs from the observed one.
	ReasonStatusChanged = "StatusChanged"
)

// Reasons why a Pod is lost. They are also the reasons of the actions that follow.
const (
	// ReasonNodeGone means that the Node object was deleted.
	ReasonNodeGone = "NodeGone"
	// ReasonNodeOutOfService means that an administrator put the Node out of service.
	ReasonNodeOutOfService = "NodeOutOfService"
	// ReasonNodeUnreachable means that the Node was unreachable for longer than its grace period.
	ReasonNodeUnreachable = "NodeUnreachable"
	// ReasonNodeNotReady means that the Node was not ready for longer than its grace period.
	ReasonNodeNotReady = "NodeNotReady"
	// ReasonEvicted means that Kubernetes evicted the Pod because of its Node.
	ReasonEvicted = "Evicted"
	// ReasonOverdue means that the Pod outlived its deletion.
	ReasonOverdue = "Overdue"
)
