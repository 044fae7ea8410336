// SPDX-License-Identifier: Apache-2.0

package catalog

import "github.com/olmcore/olm/catalog/internal/registry"

// Condition types that this package owns in status.conditions. It never touches others.
const (
	ConditionAvailable      = "Available"      // at least one registry Pod serves, or the client of an address is connected. The message names the Pods and their nodes
	ConditionProgressing    = "Progressing"    // Pods are being started, replaced or rolled
	ConditionDegraded       = "Degraded"       // something needs attention; the message lists everything
	ConditionUpdatePolled   = "UpdatePolled"   // what became of the last poll of the image; absent when none is asked for
	ConditionReplicasSpread = "ReplicasSpread" // whether several replicas are on as many nodes as can be; absent for one
)

// Reasons of conditions and Diagnostics.
const (
	ReasonRegistryServing     = "RegistryServing"     // a registry Pod is ready; nothing to do
	ReasonConnectionReady     = "ConnectionReady"     // the registry at spec.address answers; nothing to do
	ReasonConnecting          = "Connecting"          // nothing is known yet about the registry at spec.address; wait
	ReasonConnectionFailed    = "ConnectionFailed"    // the client cannot reach the registry; check spec.address, network policies and DNS
	ReasonNoReadyPods         = "NoReadyPods"         // no registry Pod is ready; see Progressing and Degraded for what is done about it
	ReasonSpecInvalid         = "SpecInvalid"         // the spec cannot be carried out; correct the named field
	ReasonPollIntervalInvalid = "PollIntervalInvalid" // the polling interval cannot be used; correct spec.updateStrategy.registryPoll.interval
	ReasonDeleting            = "Deleting"            // the CatalogSource or its namespace is being deleted; nothing is created any more
	ReasonNamespaceUnknown    = "NamespaceUnknown"    // the Namespace object was not found, so the security context of the Pods is unknown; it passes once the cache has it
	ReasonConfigMapMissing    = "ConfigMapMissing"    // the ConfigMap that spec.configMap names does not exist; create it. What serves already goes on serving

	ReasonSpread       = "Spread"       // the replicas are on as many nodes as can be
	ReasonCoLocated    = "CoLocated"    // replicas share a node though others could take one; it passes with their next replacement
	ReasonNodesUnknown = "NodesUnknown" // the nodes were not read, so nothing is known about them

	ReasonUpToDate            = "UpToDate"            // the last poll found the content that is served; nothing to do
	ReasonUpdatePromoted      = "UpdatePromoted"      // the last poll found newer content, which is served now
	ReasonCandidateFailed     = "CandidateFailed"     // the Pod of the last poll crashed or could not start; look at the image, the Pods that serve go on with what they have
	ReasonCandidateTimedOut   = "CandidateTimedOut"   // the Pod of the last poll did not become ready in time; as for CandidateFailed
	ReasonNeverPolled         = "NeverPolled"         // no poll has ended yet; wait
	ReasonPollingDisabled     = "PollingDisabled"     // spec.updateStrategy has no effect on a catalog without image; remove it
	ReasonImagePinnedByDigest = "ImagePinnedByDigest" // an image with a digest cannot change and is not polled; use a tag, or remove spec.updateStrategy

	ReasonInitialRollout           = "InitialRollout"           // the first Pods are starting; wait
	ReasonSpecRollout              = "SpecRollout"              // Pods of the new spec replace those of the old; wait
	ReasonContentUpdate            = "ContentUpdate"            // Pods with newer content of the same image replace the others; wait
	ReasonNodeFailover             = "NodeFailover"             // Pods of a failed node are replaced; wait
	ReasonRefill                   = "Refill"                   // missing Pods are replaced; wait
	ReasonComplete                 = "Complete"                 // as many Pods are ready as asked for; nothing to do
	ReasonBackOff                  = "BackOff"                  // a Pod failed, the next attempt waits; look at its logs
	ReasonProgressDeadlineExceeded = "ProgressDeadlineExceeded" // the new Pods did not become ready in time, the old ones keep serving; look at the new Pods, or take the change back
	ReasonWaitingForNodes          = "WaitingForNodes"          // a node does not answer or none is usable; the decision follows when the grace period is over

	ReasonAsExpected          = "AsExpected"          // nothing is wrong
	ReasonReplicasUnavailable = "ReplicasUnavailable" // fewer Pods are ready than asked for, and no other cause is known yet; it usually passes
	ReasonNodeLost            = "NodeLost"            // Pods count as lost with their node; the node needs repair, the Pods are replaced
	ReasonPodUnschedulable    = "PodUnschedulable"    // no node takes the Pod; add capacity, or relax spec.grpcPodConfig
	ReasonImagePullFailed     = "ImagePullFailed"     // a node cannot pull the image; check the image name, the registry and spec.secrets
	ReasonCrashLooping        = "CrashLooping"        // the registry does not stay up; look at the Pod's logs
	ReasonStuckTerminating    = "StuckTerminating"    // a Pod outlives its deletion on a node that works, or a finalizer holds it; its replacement does not wait for it
	ReasonForeignPod          = "ForeignPod"          // a Pod with the catalog's labels does not belong to it and may answer in its place; delete the Pod or its labels
	ReasonNameConflict        = "NameConflict"        // an object with a name that the catalog needs is unmanaged or owned by another and is left alone; rename one of the two
	ReasonPodRejected         = "PodRejected"         // the API server refuses the Pod; correct what its message names
	ReasonMassDisruption      = "MassDisruption"      // so many nodes fail at once that the fault may be in the control plane; replacements are limited until it passes

	ReasonAddressIgnored       = "AddressIgnored"       // spec.address has no effect beside spec.image; remove it
	ReasonPodConfigIgnored     = "PodConfigIgnored"     // spec.grpcPodConfig.extractContent has no effect on a config map; remove it
	ReasonPodConfigUnusual     = "PodConfigUnusual"     // a field of spec.grpcPodConfig has a value that is used as it is and seldom meant; check the field
	ReasonInvalidInput         = "InvalidInput"         // the caller of Assess breaks the contract; correct the field that the message names
	ReasonNotRead              = "NotRead"              // objects of a kind were not read, so that nothing is done about them; let the Reader read the kind that is named
	ReasonServiceAccountShared = "ServiceAccountShared" // the ServiceAccount of the catalog's name is unmanaged or owned by another and is used as it is; add the pull secrets to it yourself
	ReasonHAConfigInvalid      = "HAConfigInvalid"      // an annotation cannot be used, the default is; correct it
)

// Reasons of actions (Cause.Reason) beside those above.
const (
	ReasonPodMissing        = "PodMissing"                  // fewer Pods exist than asked for
	ReasonPodTerminating    = "PodTerminating"              // the Pod is being deleted
	ReasonPodTerminated     = "PodTerminated"               // the Pod has finished and will not run again
	ReasonPodStuck          = "PodStuck"                    // the Pod does not start on its node
	ReasonPodOutdated       = "PodOutdated"                 // the Pod was made from another spec
	ReasonPodDisrupted      = "PodDisrupted"                // the Pod is about to be evicted
	ReasonPodSurplus        = "PodSurplus"                  // better Pods serve already
	ReasonPodKept           = "PodKept"                     // the Pod stays while others that serve are deleted; this is recorded before
	ReasonPodReplaced       = "PodReplaced"                 // a replacement of the lost Pod serves
	ReasonContentDiffers    = "ContentDiffers"              // other Pods serve newer content of the same image
	ReasonCandidateReady    = "CandidateReady"              // the Pod may take over
	ReasonCandidateObsolete = "CandidateObsolete"           // the Pod has nothing to replace any more
	ReasonPollDue           = "PollDue"                     // it is time to look for newer content of the image
	ReasonObjectMissing     = registry.ReasonObjectMissing  // an object that the catalog needs does not exist
	ReasonObjectDiffers     = registry.ReasonObjectDiffers  // an object that the catalog needs is not as it must be
	ReasonBudgetObsolete    = registry.ReasonBudgetObsolete // one replica needs no PodDisruptionBudget
	ReasonSourceTypeChanged = "SourceTypeChanged"           // the object served a former source type
	ReasonStatusChanged     = "StatusChanged"               // the recorded status is not what is observed
)

// Why a Pod is lost; also reasons of the actions that follow.
const (
	ReasonNodeGone         = "NodeGone"         // the Node object was deleted
	ReasonNodeOutOfService = "NodeOutOfService" // an administrator put the node out of service
	ReasonNodeUnreachable  = "NodeUnreachable"  // the node is silent for longer than its grace
	ReasonNodeNotReady     = "NodeNotReady"     // the node is not ready for longer than its grace
	ReasonEvicted          = "Evicted"          // Kubernetes gave the Pod up because of its node
	ReasonOverdue          = "Overdue"          // the Pod outlived its deletion
)
