// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"fmt"
	"slices"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/olmcore"
)

// Names of the roles that come with Kubernetes.
const (
	delegatorRole = "system:auth-delegator"
	readerRole    = "extension-apiserver-authentication-reader"
)

// isOfNamespace reports whether a binding outside the namespace is for Deployments of it: its owner labels say so, or
// it has none, is OLM's, and all its subjects are ServiceAccounts of the namespace. OLM does not label all of them.
func isOfNamespace(labels map[string]string, subjects []rbacv1.Subject, namespace string) bool {
	if owner, ok := olmcore.OwnerOf(labels); ok {
		return owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == namespace
	}
	return labels[olmcore.LabelManaged] == "true" && IsBindingOf(subjects, namespace)
}

// IsBindingOf reports whether a binding has subjects, and all of them are ServiceAccounts of a namespace.
func IsBindingOf(subjects []rbacv1.Subject, namespace string) bool {
	isOfAnother := func(s rbacv1.Subject) bool { return s.Kind != rbacv1.ServiceAccountKind || s.Namespace != namespace }
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, isOfAnother)
}

// choose returns the binding of the namespace among those with some names, the first that exists, or the name of a new
// one; both empty when all names are others'.
func choose[T olmcore.Object](live []T, inNamespace string, names []string, isOurs func(T) bool) (ours T, name string) {
	var free string
	for _, candidate := range names {
		o, found := owned.Find(live, inNamespace, candidate)
		switch {
		case found && isOurs(o):
			return o, candidate
		case !found && free == "":
			free = candidate
		}
	}
	return ours, free
}

// labelled returns the labels of a binding outside the namespace with the desired ones, and whether that is a change to
// be made now. What OLM made for the CSV lacks the UID, which it gets when the operator is installed again: for it
// alone nothing is.
func (s *Source) labelled(have, want map[string]string) (labels map[string]string, changed bool) {
	labels, changed = olmcore.MergeLabels(have, want)
	isOLMs := have[olmcore.LabelManaged] == "true" && owned.ByIncarnation(s.CSV).Owns(have)
	return labels, changed && (!isOLMs || s.isBeingInstalled())
}

func (s *Source) isBeingInstalled() bool { return s.CSV.Status.Phase == v1alpha1.CSVPhaseInstallReady }

// delegator lets the operator have the API server judge who calls it.
func (s *Source) delegator(deployment, account string) (olmcore.Action, string) {
	names := DelegatorNames(deployment, s.CSV.Namespace)
	live, name := choose(s.Objects.ClusterRoleBindings.Items, metav1.NamespaceAll, names, func(b *rbacv1.ClusterRoleBinding) bool {
		return isOfNamespace(b.Labels, b.Subjects, s.CSV.Namespace)
	})
	want := &rbacv1.ClusterRoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"}, ObjectMeta: s.outsideMeta("", name),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: delegatorRole},
		Subjects: s.subjects(account),
	}
	switch {
	case name == "":
		return nil, fmt.Sprintf("clusterrolebinding %s is another's", names[0])
	case live == nil:
		return s.create(want, ReasonInstall, "clusterrolebinding "+name+" does not exist"), ""
	case live.RoleRef != want.RoleRef:
		return s.recreate(live, "clusterrolebinding "+name+" binds another role"), ""
	}
	labels, changed := s.labelled(live.Labels, want.Labels)
	if !changed && s.areSubjects(live.Subjects, account) {
		return nil, ""
	}
	after := live.DeepCopy()
	after.Labels, after.Subjects = labels, want.Subjects
	return s.update(live, after, ReasonInstall, "clusterrolebinding "+name+" is not that of this version"), ""
}

// reader lets the operator read by which certificates the API server calls it.
//
// Differs: OLM does not label it, so that it stays for ever; one that OLM made is labelled when the operator is
// installed again.
func (s *Source) reader(deployment, account string) (olmcore.Action, string) {
	names := ReaderNames(deployment, s.CSV.Namespace)
	live, name := choose(s.Objects.RoleBindings.Items, metav1.NamespaceSystem, names, func(b *rbacv1.RoleBinding) bool {
		return isOfNamespace(b.Labels, b.Subjects, s.CSV.Namespace)
	})
	want := &rbacv1.RoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"},
		ObjectMeta: s.outsideMeta(metav1.NamespaceSystem, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: readerRole},
		Subjects:   s.subjects(account),
	}
	switch {
	case name == "":
		return nil, fmt.Sprintf("rolebinding %s/%s is another's", metav1.NamespaceSystem, names[0])
	case live == nil:
		return s.create(want, ReasonInstall, "rolebinding "+name+" does not exist in kube-system"), ""
	case live.RoleRef != want.RoleRef:
		return s.recreate(live, "rolebinding "+name+" in kube-system binds another role"), ""
	}
	labels, changed := s.labelled(live.Labels, want.Labels)
	if _, isLabelled := olmcore.OwnerOf(live.Labels); !isLabelled && !s.isBeingInstalled() {
		changed = false // OLM does not label it
	}
	if !changed && s.areSubjects(live.Subjects, account) {
		return nil, ""
	}
	after := live.DeepCopy()
	after.Labels, after.Subjects = labels, want.Subjects
	return s.update(live, after, ReasonInstall, "rolebinding "+name+" in kube-system is not that of this version"), ""
}
