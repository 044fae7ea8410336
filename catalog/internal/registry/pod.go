// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/olmcore/olm/olmcore"
)

// Why a Pod was made; the value of the annotation KeyPurpose.
const (
	PurposeInitial  = "initial"
	PurposeFailover = "failover"
	PurposeRefill   = "refill"
	PurposeRestart  = "restart"
	PurposeRollout  = "rollout"
	PurposePoll     = "poll"
)

// PodRequest is one Pod to make.
type PodRequest struct {
	// Candidate: the Service does not select it yet.
	Candidate bool
	Purpose   string
	Attempt   int
	// Replaces is the UID of the Pod that it replaces, if any.
	Replaces types.UID
	Cause    olmcore.Cause
}

// Pod returns a new Pod of a name, which had better run on none of the Nodes to avoid.
func (r *Registry) Pod(name string, request PodRequest, avoid []string) *corev1.Pod {
	labels := servingLabels(r.Source.Name)
	if request.Candidate {
		labels[LabelServing], labels[LabelCandidate] = "", r.Source.Name
	}
	labels[labelPodHash] = r.podHash
	owner := olmcore.OwnerReferenceTo(r.Source)
	owner.Controller = new(true)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: r.Source.Name + "-", Namespace: r.Source.Namespace,
			Labels: labels, Annotations: r.podAnnotations(request), OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *r.podSpec.DeepCopy(),
	}
	switch {
	case r.ConfigMap != nil:
		r.serveConfigMap(pod)
	case r.AccountShared:
		// Whoever may name a CatalogSource and its image would act as any account of the
		// namespace. A registry of an image asks the API server nothing.
		pod.Spec.AutomountServiceAccountToken = new(false)
	}
	avoidNodes(&pod.Spec, avoid)
	r.spread(pod, request.Purpose)
	return pod
}

func (r *Registry) podAnnotations(request PodRequest) map[string]string {
	annotations := map[string]string{}
	for key, value := range r.Source.Annotations {
		if key != annotationApplied && !strings.HasPrefix(key, olmcore.KeyPrefix) {
			annotations[key] = value
		}
	}
	annotations[annotationEvict] = "true"
	annotations[KeyAttempt] = strconv.Itoa(request.Attempt)
	annotations[KeyPurpose] = request.Purpose
	if request.Replaces != "" {
		annotations[KeyReplaces] = string(request.Replaces)
		annotations[KeyCause] = request.Cause.Message
	}
	return annotations
}

// serveConfigMap completes a Pod: what OLM sets after it has computed the hash.
func (r *Registry) serveConfigMap(pod *corev1.Pod) {
	pod.Labels[labelConfigMapVersion] = r.ConfigMap.ResourceVersion
	pod.Annotations[keyConfigMapHash] = r.contentHash
	pod.Spec.ServiceAccountName = r.Source.Name + SuffixAccount
	pod.Spec.Containers[0].Command = []string{"configmap-server", "-c", r.Source.Spec.ConfigMap, "-n", r.Source.Namespace}
}

// avoidNodes is a hint for the scheduler where the user left the field empty. It is no
// part of the hash.
func avoidNodes(spec *corev1.PodSpec, nodes []string) {
	if len(nodes) == 0 || spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	term := corev1.PreferredSchedulingTerm{Weight: 100}
	for _, node := range nodes {
		term.Preference.MatchFields = append(term.Preference.MatchFields, corev1.NodeSelectorRequirement{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
		})
	}
	spec.Affinity.NodeAffinity = &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term},
	}
}

// spread keeps several replicas apart; it is no part of the hash.
func (r *Registry) spread(pod *corev1.Pod, purpose string) {
	if r.Replicas < 2 || r.SpreadHosts == "" {
		return
	}
	beside := map[string]string{labelPodHash: pod.Labels[labelPodHash]}
	if purpose == PurposePoll && r.SpreadHosts == corev1.ScheduleAnyway {
		// With new content these replace all others, whose places will be free.
		beside = map[string]string{LabelCandidate: r.Source.Name}
	}
	over := func(topology string, when corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: beside},
		}
	}
	pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		over(corev1.LabelHostname, r.SpreadHosts), over(corev1.LabelTopologyZone, corev1.ScheduleAnyway),
	}
}

// Promoted returns a copy of a Pod that the Service selects.
func Promoted(pod *corev1.Pod, name string) *corev1.Pod {
	after := pod.DeepCopy()
	after.Labels[LabelServing], after.Labels[LabelCandidate] = name, ""
	after.Labels[olmcore.LabelManaged] = "true"
	return after
}
