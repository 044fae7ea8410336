// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/olmcore"
)

// podActions turns a plan into actions: new Pods first, then those that take
// over, then those that go.
func (v *view) podActions(pl *plan) (actions []olmcore.Action) {
	number := 0
	for _, c := range pl.creates {
		name := v.freeName(&number)
		actions = append(actions, olmcore.CreateOf(v.newPod(name, c), c.cause))
	}
	for _, pod := range pl.promotes {
		actions = append(actions, v.promotion(pod))
	}
	slices.SortStableFunc(pl.deletes, func(a, b deletion) int {
		if (a.grace == 0) != (b.grace == 0) {
			return int(b.grace - a.grace)
		}
		return strings.Compare(a.pod.Name, b.pod.Name)
	})
	for _, d := range pl.deletes {
		actions = append(actions, d.action())
	}
	return actions
}

// podBase is what the names of a CatalogSource's Pods start with.
func podBase(name string) string { return strings.TrimRight(name[:min(len(name), 52)], "-.") }

const podSuffix = 10

// isPodName reports whether a Pod's name may be one that freeName gives.
func isPodName(name, source string) bool {
	rest, found := strings.CutPrefix(name, podBase(source)+"-")
	return found && len(rest) == podSuffix
}

// freeName returns the next computed name, from a number on, that no observed Pod
// has, whoever it belongs to by now. A decision on the same view, or on one that lags behind this one, gives the
// same name, so that the API server refuses the twin.
func (v *view) freeName(number *int) string {
	base := podBase(v.cs.Name)
	for {
		name := base + "-" + olmcore.NameSuffix(podSuffix, string(v.cs.UID), v.podHash(0), strconv.Itoa(*number))
		*number++
		if !slices.ContainsFunc(v.in.Pods, func(p *corev1.Pod) bool { return p.Name == name && p.Namespace == v.cs.Namespace }) {
			return name
		}
	}
}

func (v *view) newPod(name string, c creation) *corev1.Pod {
	annotations := map[string]string{}
	for key, value := range v.cs.Annotations {
		if key != annotationApplied && !strings.HasPrefix(key, v.set.prefix) {
			annotations[key] = value
		}
	}
	annotations[annotationEvict] = "true"
	annotations[v.set.prefix+keyAttempt] = strconv.Itoa(c.attempt)
	annotations[v.set.prefix+keyPurpose] = c.purpose
	if c.replaces != "" {
		annotations[v.set.prefix+keyReplaces] = string(c.replaces)
		annotations[v.set.prefix+keyCause] = c.cause.Message
	}
	labels := servingLabels(v.cs.Name)
	if c.role == roleCandidate {
		labels[labelServing], labels[labelCandidate] = "", v.cs.Name
	}
	labels[labelPodHash] = v.podHash(0)
	owner := olmcore.OwnerReferenceTo(v.in.CatalogSource)
	owner.Controller = new(true)
	spec := v.shape().spec(ProfileMain)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, GenerateName: v.cs.Name + "-", Namespace: v.cs.Namespace,
			Labels: labels, Annotations: annotations, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: *spec.DeepCopy(),
	}
	if v.mode == modeConfigMap {
		v.serveConfigMap(pod)
	} else {
		v.pin(&pod.Spec, c)
		v.guardAccount(&pod.Spec)
	}
	v.place(&pod.Spec, c.purpose)
	return pod
}

// guardAccount keeps the token of a ServiceAccount that is not the catalog's out of its
// Pods: whoever may name a CatalogSource and its image would act as any account of the
// namespace. A registry of an image asks the API server nothing. It is no part of the hash.
func (v *view) guardAccount(spec *corev1.PodSpec) {
	if v.accountShared && !v.in.Config.MountSharedAccounts {
		spec.AutomountServiceAccountToken = new(false)
	}
}

// pin makes a Pod that stands in for another run the content that is known.
func (v *view) pin(spec *corev1.PodSpec, c creation) {
	if !v.in.Config.PinDigest || c.purpose != purposeFailover && c.purpose != purposeRefill && c.purpose != purposeRestart {
		return
	}
	content := v.servedContent()
	for i := range v.pods {
		if p := &v.pods[i]; content == "" && p.pod.UID == c.replaces {
			content = imageID(p.pod)
		}
	}
	if _, after, found := strings.Cut(content, "://"); found {
		content = after
	}
	if !strings.Contains(content, "@") {
		return
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if containers[i].Image == v.cs.Spec.Image {
				containers[i].Image, containers[i].ImagePullPolicy = content, corev1.PullIfNotPresent
			}
		}
	}
}

// place adds hints for the scheduler where the user left the field empty. They
// are no part of the hash.
func (v *view) place(spec *corev1.PodSpec, purpose string) {
	if bad := v.doubtfulNodes(); len(bad) > 0 && (spec.Affinity == nil || spec.Affinity.NodeAffinity == nil) {
		if spec.Affinity == nil {
			spec.Affinity = &corev1.Affinity{}
		}
		term := corev1.PreferredSchedulingTerm{Weight: 100}
		for _, node := range bad {
			term.Preference.MatchFields = append(term.Preference.MatchFields, corev1.NodeSelectorRequirement{
				Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpNotIn, Values: []string{node},
			})
		}
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{term},
		}
	}
	if v.set.replicas < 2 || v.set.spread == SpreadOff {
		return
	}
	beside, host := map[string]string{labelPodHash: v.podHash(0)}, corev1.ScheduleAnyway
	switch {
	case v.set.spread == SpreadRequire:
		host = corev1.DoNotSchedule
	case purpose == purposePoll:
		// With new content these replace all others, whose places will be free.
		beside = map[string]string{labelCandidate: v.cs.Name}
	}
	over := func(topology string, when corev1.UnsatisfiableConstraintAction) corev1.TopologySpreadConstraint {
		return corev1.TopologySpreadConstraint{
			MaxSkew: 1, TopologyKey: topology, WhenUnsatisfiable: when, LabelSelector: &metav1.LabelSelector{MatchLabels: beside},
		}
	}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		over(corev1.LabelHostname, host), over(corev1.LabelTopologyZone, corev1.ScheduleAnyway),
	}
}

// doubtfulNodes are the nodes of own Pods that a new Pod had better avoid.
func (v *view) doubtfulNodes() []string {
	const most = 10
	bad := map[string]bool{}
	for i := range v.pods {
		p := &v.pods[i]
		switch p.node {
		case NodeGone, NodeOutOfService, NodeUnreachable, NodeNotReady, NodeRecovering:
			bad[p.pod.Spec.NodeName] = true
		default:
			if p.class == ClassStuck || p.class == ClassDisrupted {
				bad[p.pod.Spec.NodeName] = true
			}
		}
	}
	delete(bad, "")
	names := slices.Sorted(maps.Keys(bad))
	return names[:min(len(names), most)]
}

// promotion makes the Service select a Pod.
func (v *view) promotion(pod *corev1.Pod) olmcore.Action {
	after := pod.DeepCopy()
	after.Labels[labelServing], after.Labels[labelCandidate] = v.cs.Name, ""
	after.Labels[olmcore.LabelManaged] = "true"
	why := olmcore.Cause{Reason: ReasonCandidateReady, Message: "the Pod takes over"}
	if roleOf(pod, v.cs.Name) == roleServing {
		why = olmcore.Cause{Reason: ReasonObjectDiffers, Message: "the Service does not select the Pod"}
	}
	return olmcore.UpdateOf(pod, after, why)
}
