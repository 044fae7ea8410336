// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// These are the reasons for Deployments that are not available.
const (
	// ReasonDeploymentMissing means that a Deployment of the ClusterServiceVersion does not exist. The OLM controllers
	// create it. If it stays missing, check that they are running.
	ReasonDeploymentMissing = "DeploymentMissing"
	// ReasonReplicaFailure means that the Pods of the Deployment cannot be created, for example because of a quota or an
	// admission webhook. Fix the problem that the message reports.
	ReasonReplicaFailure = "ReplicaFailure"
	// ReasonDeadline means that the Deployment exceeded its progress deadline, and no Pod shows the cause. Check the
	// events of the Deployment.
	ReasonDeadline = "ProgressDeadlineExceeded"
	// ReasonUnavailable means that the Deployment is not available, and its conditions and its Pods do not show why. If
	// this lasts, check the Pods.
	ReasonUnavailable = "DeploymentUnavailable"
)

// These are the reasons for Pods that are not ready. The kubelet may alternate between several reasons for one
// problem; here a single reason stands for all of them.
const (
	// ReasonUnschedulable means that the Pod cannot be scheduled to any node. Add capacity, or change the scheduling
	// requirements of the Pod with spec.config of the Subscription.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImagePull means that an image cannot be pulled. Correct the name of the image, mirror the image, or give the
	// ServiceAccount a pull secret.
	ReasonImagePull = "ImagePullBackOff"
	// ReasonInvalidImage means that the name of an image is not valid. Correct the name.
	ReasonInvalidImage = "InvalidImageName"
	// ReasonContainerConfig means that the Pod uses a ConfigMap, a Secret or a key that does not exist. Create the
	// object that the message names.
	ReasonContainerConfig = "CreateContainerConfigError"
	// ReasonContainerCreate means that the node cannot create the container. Check the events of the Pod.
	ReasonContainerCreate = "CreateContainerError"
	// ReasonContainerRun means that the container cannot be started. Correct its command or its image.
	ReasonContainerRun = "RunContainerError"
	// ReasonCrashLoop means that a container terminates repeatedly. Read the log with kubectl logs --previous, and fix the
	// problem that the log reports.
	ReasonCrashLoop = "CrashLoopBackOff"
	// ReasonOutOfMemory means that a container was terminated because it exceeded its memory limit. Raise the limit
	// with spec.config.resources of the Subscription.
	ReasonOutOfMemory = "OOMKilled"
	// ReasonPodFailed means that the Pod is in the phase Failed, for example after an eviction. The Deployment replaces
	// the Pod. Check the message of the Pod and its node.
	ReasonPodFailed = "PodFailed"
	// ReasonPodPending means that the containers of the Pod have not been created yet. If this lasts, check the events
	// of the Pod.
	ReasonPodPending = "PodPending"
	// ReasonNotReady means that the containers are running but the Pod is not ready. If this lasts, check the log and
	// the readiness probe of the Pod.
	ReasonNotReady = "NotReady"
)

// trouble describes one failure of a Deployment or a Pod.
type trouble struct {
	Reason string
	// Waiting contains the kubelet's reasons for a container that waits because of this failure.
	Waiting []string
	// Ends means that the phase is Stuck, because a retry cannot succeed.
	Ends bool
	// Late means that the failure is normal for some time. It gets advice after longTime.
	Late bool
}

// troubles is the table of failures.
var troubles = []trouble{
	{Reason: ReasonDeploymentMissing, Late: true},
	{Reason: ReasonReplicaFailure},
	{Reason: ReasonDeadline},
	{Reason: ReasonUnavailable, Late: true},
	{Reason: ReasonUnschedulable},
	{
		Reason:  ReasonImagePull,
		Waiting: []string{"ImagePullBackOff", "ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed", "ErrImageNeverPull"},
	},
	{Reason: ReasonInvalidImage, Waiting: []string{"InvalidImageName"}, Ends: true},
	{Reason: ReasonContainerConfig, Waiting: []string{"CreateContainerConfigError"}},
	{Reason: ReasonContainerCreate, Waiting: []string{"CreateContainerError"}},
	{Reason: ReasonContainerRun, Waiting: []string{"RunContainerError", "StartError"}},
	{Reason: ReasonCrashLoop, Waiting: []string{"CrashLoopBackOff"}},
	{Reason: ReasonOutOfMemory},
	{Reason: ReasonPodFailed},
	{Reason: ReasonPodPending, Late: true},
	{Reason: ReasonNotReady, Late: true},
}

// waitsForWorkload contains the reasons of a ClusterServiceVersion that one of its Deployments may have caused.
var waitsForWorkload = []v1alpha1.ConditionReason{
	"", v1alpha1.CSVReasonWaiting, v1alpha1.CSVReasonInstallSuccessful, v1alpha1.CSVReasonComponentUnhealthy, v1alpha1.CSVReasonInstallCheckFailed,
	v1alpha1.CSVReasonComponentFailed, v1alpha1.CSVReasonComponentFailedNoRetry, v1alpha1.CSVReasonNeedsReinstall,
}

// symptom is a failure of an observed object.
type symptom struct {
	Object          olmcore.Ref
	Reason, Message string
}

// workload returns the finding with the Deployment or the Pod that a version waits for as its object. It returns the
// finding unchanged if Deployments were not read.
func (n *namespace) workload(c *v1alpha1.ClusterServiceVersion, f finding) finding {
	if !n.deployments.Complete || !slices.Contains(waitsForWorkload, c.Status.Reason) {
		return f
	}
	var found *symptom
	for i := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		s := n.deployment(c, c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[i].Name)
		if s != nil && (found == nil || found.Object.Kind != "Pod" && s.Object.Kind == "Pod") {
			found = s
		}
	}
	if found == nil {
		return f
	}
	f.Object, f.Reason, f.Message = found.Object, found.Reason, found.Message
	row := troubles[slices.IndexFunc(troubles, func(t trouble) bool { return t.Reason == found.Reason })]
	switch {
	case !row.Late:
		f.now = situation(row.Reason)
	case f.now != "": // the version has failed already
		f.now = situation(row.Reason)
	default:
		f.late = situation(row.Reason)
	}
	if row.Ends && f.Phase != Failed && f.Phase != Degraded {
		f.Phase = Stuck
	}
	return f
}

// deployment returns the failure of a Deployment of a version, or nil if there is none. A Deployment that does not
// exist is a failure only in phases in which the version waits for it.
func (n *namespace) deployment(c *v1alpha1.ClusterServiceVersion, name string) *symptom {
	i := slices.IndexFunc(n.deployments.Items, func(d *appsv1.Deployment) bool { return d.Name == name })
	if i < 0 {
		if c.Status.Phase == v1alpha1.CSVPhaseInstallReady || c.Status.Phase == v1alpha1.CSVPhaseNone || name == "" {
			return nil
		}
		return &symptom{olmcore.Ref{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Namespace: n.name, Name: name},
			ReasonDeploymentMissing, "Deployment " + name + " does not exist"}
	}
	d := n.deployments.Items[i]
	if isAvailable(d) {
		return nil
	}
	failure, progress := deploymentCondition(d, appsv1.DeploymentReplicaFailure), deploymentCondition(d, appsv1.DeploymentProgressing)
	ofPod := n.pod(d)
	// If the Deployment cannot create Pods, it does not replace a failed one.
	if ofPod != nil && (ofPod.Reason != ReasonPodFailed || failure.Status != corev1.ConditionTrue) {
		return ofPod
	}
	s := &symptom{Object: olmcore.RefOf(d).Unversioned(), Reason: ReasonUnavailable}
	switch {
	case failure.Status == corev1.ConditionTrue:
		s.Reason, s.Message = ReasonReplicaFailure, failure.Message
	case progress.Status == corev1.ConditionFalse && progress.Reason == ReasonDeadline:
		s.Reason, s.Message = ReasonDeadline, progress.Message
	default:
		s.Message = deploymentCondition(d, appsv1.DeploymentAvailable).Message
	}
	s.Message = cmp.Or(
		s.Message,
		fmt.Sprintf(
			"Deployment %s has %d of %d replicas updated, and %d available",
			d.Name,
			d.Status.UpdatedReplicas,
			desired(d),
			d.Status.AvailableReplicas,
		),
	)
	return s
}

// desired returns the desired number of replicas of a Deployment.
func desired(d *appsv1.Deployment) int32 {
	if d.Spec.Replicas == nil {
		return 1
	}
	return *d.Spec.Replicas
}

func isAvailable(d *appsv1.Deployment) bool {
	want := desired(d)
	return d.Status.ObservedGeneration >= d.Generation && d.Status.UpdatedReplicas >= want && d.Status.AvailableReplicas >= want
}

func deploymentCondition(d *appsv1.Deployment, t appsv1.DeploymentConditionType) (c appsv1.DeploymentCondition) {
	if i := slices.IndexFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool { return c.Type == t }); i >= 0 {
		return d.Status.Conditions[i]
	}
	return c
}

// pod returns the failure of the newest Pod of a Deployment that fails, or nil if there is none. Failures with Late are
// used only if there is no other failure. A failed Pod is ignored if there is a newer Pod.
func (n *namespace) pod(d *appsv1.Deployment) *symptom {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() {
		return nil
	}
	pods := slices.DeleteFunc(slices.Clone(n.pods), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || !selector.Matches(labelsOf(p)) || isOfAnother(p, d)
	})
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	var usual *symptom
	for i, p := range pods {
		reason, message := troubleOf(p)
		if reason == "" || reason == ReasonPodFailed && i > 0 {
			continue
		}
		s := &symptom{olmcore.RefOf(p).Unversioned(), reason, message}
		if !slices.ContainsFunc(troubles, func(t trouble) bool { return t.Reason == reason && t.Late }) {
			return s
		}
		if usual == nil {
			usual = s
		}
	}
	return usual
}

// isOfAnother reports whether a Pod that matches the selector of a Deployment does not belong to it: its controller is
// not a ReplicaSet, or it is a ReplicaSet named after another Deployment.
func isOfAnother(p *corev1.Pod, d *appsv1.Deployment) bool {
	controller := metav1.GetControllerOfNoCopy(p)
	if controller == nil {
		return false
	}
	hash := p.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	deployment, named := strings.CutSuffix(controller.Name, "-"+hash)
	return controller.Kind != "ReplicaSet" || hash != "" && named && deployment != d.Name
}
