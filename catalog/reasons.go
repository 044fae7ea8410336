// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/olmcore/olm/catalog/internal/registry"

// Types of the conditions in status.conditions that Reconcile owns. It does not change conditions of other types.
const (
	// ConditionAvailable reports whether a registry Pod serves. If the CatalogSource uses spec.address, it reports whether
	// the client is connected to that address. The message usually lists the Pods and their Nodes, or the address.
	ConditionAvailable = "Available"
	// ConditionProgressing reports whether Pods are being started, replaced or rolled out. If its status is False, its
	// reason explains why.
	ConditionProgressing = "Progressing"
	// ConditionDegraded reports whether the catalog has problems. Its message lists all of them.
	ConditionDegraded = "Degraded"
	// ConditionConnected is present only while the gRPC client cannot connect to a registry that should answer. Its status
	// is False, and its message usually contains the first error.
	ConditionConnected = "Connected"
	// ConditionUpdatePolled reports the result of the last poll of the image. The condition is absent if the spec does not
	// configure polls.
	ConditionUpdatePolled = "UpdatePolled"
	// ConditionReplicasSpread reports whether the replicas run on as many Nodes as possible. The condition is absent if
	// the catalog has one replica or runs no Pods.
	ConditionReplicasSpread = "ReplicasSpread"
)

// Reasons of ConditionAvailable, and of ConditionProgressing while nothing can be done. Some are also reasons of
// ConditionDegraded and of Diagnostics.
const (
	// ReasonRegistryServing means that a registry Pod is ready.
	ReasonRegistryServing = "RegistryServing"
	// ReasonConnectionReady means that the registry at spec.address answers.
	ReasonConnectionReady = "ConnectionReady"
	// ReasonConnecting means that the client has not connected to the registry at spec.address yet, and no failure is
	// reported. Wait.
	ReasonConnecting = "Connecting"
	// ReasonConnectionFailed means that the client cannot connect to the registry. Check spec.address,
	// NetworkPolicies and DNS.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonNoReadyPods means that no registry Pod is ready. The conditions Progressing and Degraded report the cause and
	// the recovery.
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
	// ReasonCoLocated means that replicas share a Node although another Node could run one of them. The next replacement
	// of a Pod corrects this.
	ReasonCoLocated = "CoLocated"
	// ReasonNodesUnknown means that the Nodes were not read.
	ReasonNodesUnknown = "NodesUnknown"
)

// Reasons of ConditionUpdatePolled.
const (
	// ReasonUpToDate means that the last poll found the same content that the catalog already serves.
	ReasonUpToDate = "UpToDate"
	// ReasonUpdatePromoted means that the last poll found newer content. The catalog now serves that content.
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
	// ReasonBackOff means that a Pod failed, and the next Pod is created after a backoff. Check the logs of the Pod.
	ReasonBackOff = "BackOff"
	// ReasonProgressDeadlineExceeded means that the new Pods did not become ready in time. The old Pods continue to
	// serve. Check the new Pods, or undo the change of the spec.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonWaitingForNodes means that the unready Pods are on Nodes that are missing, unreachable or not ready, or no
	// Node is usable. A Pod is replaced after the grace period of its Node, but not while no Node is usable.
	ReasonWaitingForNodes = "WaitingForNodes"
	// ReasonPodRejected means that the API server rejected a new Pod. The creation of the Pod is retried with backoff. Fix
	// the problem that the message reports. ConditionDegraded may have this reason, too.
	ReasonPodRejected = "PodRejected"
)

// Reasons of ConditionDegraded.
const (
	// ReasonAsExpected means that nothing needs attention.
	ReasonAsExpected = "AsExpected"
	// ReasonReplicasUnavailable means that fewer Pods are ready than configured, and the cause is not known yet. The
	// catalog usually recovers without intervention.
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
	// ReasonStuckTerminating means that a Pod still exists two minutes after its deletion time, or a finalizer keeps a
	// deleted Pod that has finished. An unfinished Pod on a lost Node has the reason NodeLost instead. A Pod that is stuck
	// is replaced before it is removed.
	ReasonStuckTerminating = "StuckTerminating"
	// ReasonForeignPod means that a Pod with the labels of the catalog does not belong to it and may answer its
	// clients. Delete the Pod, or remove its labels.
	ReasonForeignPod = "ForeignPod"
	// ReasonNameConflict means that an object with a name that the catalog needs is unmanaged or owned by another. That
	// object is not changed. Rename the object or the CatalogSource.
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
	// ReasonNotRead means that the objects of a kind were not read. Missing objects of that kind are not created.
	// Configure the Reader to read the kind.
	ReasonNotRead = "NotRead"
	// ReasonServiceAccountShared means that the ServiceAccount that the catalog needs is unmanaged or owned by another.
	// The Pods use this ServiceAccount, but it is not changed. Add the Secrets in spec.secrets to its imagePullSecrets.
	ReasonServiceAccountShared = "ServiceAccountShared"
	// ReasonHAConfigInvalid means that an annotation of the CatalogSource has an invalid value and is ignored. Correct the
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
	// ReasonPodOutdated means that the Pod does not match the current spec of the CatalogSource, or the current content of
	// its ConfigMap.
	ReasonPodOutdated = "PodOutdated"
	// ReasonPodDisrupted means that the Pod is about to be evicted.
	ReasonPodDisrupted = "PodDisrupted"
	// ReasonPodSurplus means that enough other Pods serve, and they are preferred to this Pod.
	ReasonPodSurplus = "PodSurplus"
	// ReasonPodKept means that an annotation of the CatalogSource or of the kept Pod is written before other Pods that
	// serve are deleted. See AnnotationKeptPod.
	ReasonPodKept = "PodKept"
	// ReasonPodReplaced means that the lost Pod is deleted, because its replacement serves.
	ReasonPodReplaced = "PodReplaced"
	// ReasonContentDiffers means that other Pods serve newer content of the same image.
	ReasonContentDiffers = "ContentDiffers"
	// ReasonCandidateReady means that the Service selects the candidate Pod from now on.
	ReasonCandidateReady = "CandidateReady"
	// ReasonCandidateObsolete means that the Pod is not needed as a replacement any more.
	ReasonCandidateObsolete = "CandidateObsolete"
	// ReasonPollDue means that the next poll of the image is due.
	ReasonPollDue = "PollDue"
	// ReasonObjectMissing means that an object that the catalog needs does not exist.
	ReasonObjectMissing = registry.ReasonObjectMissing
	// ReasonObjectDiffers means that an object differs from the one that the catalog needs.
	ReasonObjectDiffers = registry.ReasonObjectDiffers
	// ReasonBudgetObsolete means that the catalog has only one replica, so its PodDisruptionBudget is deleted.
	ReasonBudgetObsolete = registry.ReasonBudgetObsolete
	// ReasonSourceTypeChanged means that the object is deleted, because only the former source type needed it.
	ReasonSourceTypeChanged = "SourceTypeChanged"
	// ReasonStatusChanged means that the recorded status differs from the observed state of the catalog.
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
	// ReasonOverdue means that the Pod still exists two minutes after its deletion time.
	ReasonOverdue = "Overdue"
)
