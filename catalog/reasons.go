// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"github.com/olmcore/olm/catalog/internal/pods"
	"github.com/olmcore/olm/catalog/internal/polling"
	"github.com/olmcore/olm/catalog/internal/registry"
)

// Condition types that this package owns in status.conditions. It never touches
// others.
const (
	// ConditionAvailable: at least one registry Pod serves, or the client of an
	// address is connected. The message names the Pods and their nodes.
	ConditionAvailable = "Available"
	// ConditionProgressing: Pods are being started, replaced or rolled.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: something needs attention; the message lists everything.
	ConditionDegraded = "Degraded"
	// ConditionUpdatePolled: what became of the last poll of the image; absent when
	// none is asked for.
	ConditionUpdatePolled = "UpdatePolled"
	// ConditionReplicasSpread: whether several replicas are on as many nodes as can
	// be; absent for one.
	ConditionReplicasSpread = "ReplicasSpread"
)

// Reasons of conditions and Diagnostics.
const (
	// ReasonRegistryServing: a registry Pod is ready; nothing to do.
	ReasonRegistryServing = "RegistryServing"
	// ReasonConnectionReady: the registry at spec.address answers; nothing to do.
	ReasonConnectionReady = "ConnectionReady"
	// ReasonConnecting: nothing is known yet about the registry at spec.address;
	// wait.
	ReasonConnecting = "Connecting"
	// ReasonConnectionFailed: the client cannot reach the registry; check
	// spec.address, network policies and DNS.
	ReasonConnectionFailed = "ConnectionFailed"
	// ReasonNoReadyPods: no registry Pod is ready; see Progressing and Degraded for
	// what is done about it.
	ReasonNoReadyPods = "NoReadyPods"
	// ReasonSpecInvalid: the spec cannot be carried out; correct the named field.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonPollIntervalInvalid: the polling interval cannot be used; correct
	// spec.updateStrategy.registryPoll.interval.
	ReasonPollIntervalInvalid = "PollIntervalInvalid"
	// ReasonDeleting: the CatalogSource or its namespace is being deleted; nothing is
	// created any more.
	ReasonDeleting = "Deleting"
	// ReasonNamespaceUnknown: the Namespace object was not found, so the security
	// context of the Pods is unknown; it passes once the cache has it.
	ReasonNamespaceUnknown = "NamespaceUnknown"
	// ReasonConfigMapMissing: the ConfigMap that spec.configMap names does not exist;
	// create it. What serves already goes on serving.
	ReasonConfigMapMissing = "ConfigMapMissing"

	// ReasonSpread: the replicas are on as many nodes as can be.
	ReasonSpread = "Spread"
	// ReasonCoLocated: replicas share a node though others could take one; it passes
	// with their next replacement.
	ReasonCoLocated = "CoLocated"
	// ReasonNodesUnknown: the nodes were not read, so nothing is known about them.
	ReasonNodesUnknown = "NodesUnknown"

	// ReasonUpToDate: the last poll found the content that is served; nothing to do.
	ReasonUpToDate = polling.ReasonUpToDate
	// ReasonUpdatePromoted: the last poll found newer content, which is served now.
	ReasonUpdatePromoted = polling.ReasonUpdatePromoted
	// ReasonCandidateFailed: the Pod of the last poll crashed or could not start; look
	// at the image, the Pods that serve go on with what they have.
	ReasonCandidateFailed = polling.ReasonCandidateFailed
	// ReasonCandidateTimedOut: the Pod of the last poll did not become ready in time;
	// as for CandidateFailed.
	ReasonCandidateTimedOut = polling.ReasonCandidateTimedOut
	// ReasonNeverPolled: no poll has ended yet; wait.
	ReasonNeverPolled = polling.ReasonNeverPolled
	// ReasonPollingDisabled: spec.updateStrategy has no effect on a catalog without
	// image; remove it.
	ReasonPollingDisabled = polling.ReasonPollingDisabled
	// ReasonImagePinnedByDigest: an image with a digest cannot change and is not
	// polled; use a tag, or remove spec.updateStrategy.
	ReasonImagePinnedByDigest = polling.ReasonImagePinnedByDigest

	// ReasonInitialRollout: the first Pods are starting; wait.
	ReasonInitialRollout = "InitialRollout"
	// ReasonSpecRollout: Pods of the new spec replace those of the old; wait.
	ReasonSpecRollout = "SpecRollout"
	// ReasonContentUpdate: Pods with newer content of the same image replace the
	// others; wait.
	ReasonContentUpdate = "ContentUpdate"
	// ReasonNodeFailover: Pods of a failed node are replaced; wait.
	ReasonNodeFailover = "NodeFailover"
	// ReasonRefill: missing Pods are replaced; wait.
	ReasonRefill = "Refill"
	// ReasonComplete: as many Pods are ready as asked for; nothing to do.
	ReasonComplete = "Complete"
	// ReasonBackOff: a Pod failed, the next attempt waits; look at its logs.
	ReasonBackOff = "BackOff"
	// ReasonProgressDeadlineExceeded: the new Pods did not become ready in time, the
	// old ones keep serving; look at the new Pods, or take the change back.
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded"
	// ReasonWaitingForNodes: a node is in doubt or none is usable; it is decided when
	// its grace period is over.
	ReasonWaitingForNodes = "WaitingForNodes"

	// ReasonAsExpected: nothing is wrong.
	ReasonAsExpected = "AsExpected"
	// ReasonReplicasUnavailable: fewer Pods are ready than asked for, and no other
	// cause is known yet; it usually passes.
	ReasonReplicasUnavailable = "ReplicasUnavailable"
	// ReasonNodeLost: Pods count as lost with their node; the node needs repair, the
	// Pods are replaced.
	ReasonNodeLost = pods.ReasonNodeLost
	// ReasonPodUnschedulable: no node takes the Pod; add capacity, or relax
	// spec.grpcPodConfig.
	ReasonPodUnschedulable = pods.ReasonPodUnschedulable
	// ReasonImagePullFailed: a node cannot pull the image; check the image name,
	// the registry and spec.secrets.
	ReasonImagePullFailed = pods.ReasonImagePullFailed
	// ReasonCrashLooping: the registry does not stay up; look at the Pod's logs.
	ReasonCrashLooping = pods.ReasonCrashLooping
	// ReasonStuckTerminating: a Pod outlives its deletion on a node that works, or a
	// finalizer holds it; its replacement does not wait for it.
	ReasonStuckTerminating = pods.ReasonStuckTerminating
	// ReasonForeignPod: a Pod with the catalog's labels does not belong to it and
	// may answer in its place; delete the Pod or its labels.
	ReasonForeignPod = pods.ReasonForeignPod
	// ReasonNameConflict: an object with a name that the catalog needs belongs to
	// somebody else and is left alone; rename one of the two.
	ReasonNameConflict = "NameConflict"
	// ReasonPodRejected: the API server refuses the Pod; correct what its message
	// names.
	ReasonPodRejected = "PodRejected"
	// ReasonMassDisruption: so many nodes fail at once that the fault may be in the
	// control plane; replacements are limited until it passes.
	ReasonMassDisruption = "MassDisruption"

	// ReasonAddressIgnored: spec.address has no effect beside spec.image; remove it.
	ReasonAddressIgnored = "AddressIgnored"
	// ReasonPodConfigIgnored: spec.grpcPodConfig.extractContent has no effect on a
	// config map; remove it.
	ReasonPodConfigIgnored = "PodConfigIgnored"
	// ReasonPodConfigUnusual: a field of spec.grpcPodConfig has a value that is used as
	// it is and seldom meant; check the field.
	ReasonPodConfigUnusual = "PodConfigUnusual"
	// ReasonInvalidInput: the caller of Assess breaks the contract; correct the field
	// that the message names.
	ReasonInvalidInput = "InvalidInput"
	// ReasonNotRead: objects of a kind were not read, so that nothing is done about them;
	// let the Reader read the kind that is named.
	ReasonNotRead = "NotRead"
	// ReasonServiceAccountShared: the ServiceAccount of the catalog's name belongs to
	// somebody else and is used as it is; add the pull secrets to it yourself.
	ReasonServiceAccountShared = "ServiceAccountShared"
	// ReasonHAConfigInvalid: an annotation cannot be used, the default is; correct
	// it.
	ReasonHAConfigInvalid = "HAConfigInvalid"
)

// Reasons of actions (Cause.Reason) beside those above.
const (
	// ReasonPodMissing: fewer Pods exist than asked for.
	ReasonPodMissing = "PodMissing"
	// ReasonPodTerminating: the Pod is being deleted by somebody.
	ReasonPodTerminating = pods.ReasonPodTerminating
	// ReasonPodTerminated: the Pod has finished and will not run again.
	ReasonPodTerminated = pods.ReasonPodTerminated
	// ReasonPodStuck: the Pod does not start on its node.
	ReasonPodStuck = pods.ReasonPodStuck
	// ReasonPodOutdated: the Pod was made from another spec.
	ReasonPodOutdated = pods.ReasonPodOutdated
	// ReasonPodDisrupted: the Pod is about to be evicted.
	ReasonPodDisrupted = pods.ReasonPodDisrupted
	// ReasonPodSurplus: better Pods serve already.
	ReasonPodSurplus = "PodSurplus"
	// ReasonPodReplaced: a replacement of the lost Pod serves.
	ReasonPodReplaced = "PodReplaced"
	// ReasonContentDiffers: other Pods serve newer content of the same image.
	ReasonContentDiffers = "ContentDiffers"
	// ReasonCandidateReady: the Pod may take over.
	ReasonCandidateReady = "CandidateReady"
	// ReasonCandidateObsolete: the Pod has nothing to replace any more.
	ReasonCandidateObsolete = "CandidateObsolete"
	// ReasonPollDue: it is time to look for newer content of the image.
	ReasonPollDue = "PollDue"
	// ReasonObjectMissing: an object that the catalog needs does not exist.
	ReasonObjectMissing = registry.ReasonObjectMissing
	// ReasonObjectDiffers: an object that the catalog needs is not as it must be.
	ReasonObjectDiffers = registry.ReasonObjectDiffers
	// ReasonBudgetObsolete: one replica needs no PodDisruptionBudget.
	ReasonBudgetObsolete = registry.ReasonBudgetObsolete
	// ReasonSourceTypeChanged: the object served a former source type.
	ReasonSourceTypeChanged = "SourceTypeChanged"
	// ReasonStatusChanged: the status no longer tells what is observed.
	ReasonStatusChanged = "StatusChanged"
)

// Why a Pod is lost; also reasons of the actions that follow.
const (
	// ReasonNodeGone: the Node object was deleted.
	ReasonNodeGone = pods.ReasonNodeGone
	// ReasonNodeOutOfService: an administrator put the node out of service.
	ReasonNodeOutOfService = pods.ReasonNodeOutOfService
	// ReasonNodeUnreachable: the node is silent for longer than its grace.
	ReasonNodeUnreachable = pods.ReasonNodeUnreachable
	// ReasonNodeNotReady: the node is not ready for longer than its grace.
	ReasonNodeNotReady = pods.ReasonNodeNotReady
	// ReasonEvicted: Kubernetes gave the Pod up because of its node.
	ReasonEvicted = pods.ReasonEvicted
	// ReasonOverdue: the Pod outlived its deletion.
	ReasonOverdue = pods.ReasonOverdue
)
