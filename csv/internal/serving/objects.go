// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// isClaimable reports whether an existing object of the namespace may be taken over, because it was created for a CSV.
func isClaimable(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), model.IsCSVReference)
}

// claimed returns the metadata of an object with this CSV as the only CSV among its owners, and reports whether it
// changed.
func (s *Backends) claimed(o metav1.ObjectMeta) (after metav1.ObjectMeta, changed bool) {
	ours := olmcore.OwnerReferenceTo(s.CSV)
	owners := append(slices.DeleteFunc(slices.Clone(o.OwnerReferences), model.IsCSVReference), ours)
	if len(owners) != len(o.OwnerReferences) ||
		!slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return olmcore.SameOwnerReference(r, ours) }) {
		o.OwnerReferences, changed = owners, true
	}
	labels, relabelled := olmcore.MergeMaps(o.Labels, map[string]string{olmcore.LabelManaged: "true"})
	o.Labels = labels
	return o, changed || relabelled
}

// meta returns the metadata of a new object of the namespace.
func (s *Backends) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: s.CSV.Namespace, Labels: map[string]string{olmcore.LabelManaged: "true"},
		OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(s.CSV)},
	}
}

// outsideMeta returns the metadata of a new object outside the namespace. It has owner labels, because an owner
// reference to the CSV is not possible there.
func (s *Backends) outsideMeta(namespace, name string) metav1.ObjectMeta {
	labels := model.OwnerWithUID(s.CSV).Labels()
	labels[olmcore.LabelManaged] = "true"
	return metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels}
}

func (s *Backends) create(o olmcore.Object, reason, why string) olmcore.Action {
	a := olmcore.CreateOf(o, olmcore.Cause{Reason: reason, Message: why})
	a.As = s.Account
	return a
}

func (s *Backends) update(before, after olmcore.Object, reason, why string) olmcore.Action {
	a := olmcore.UpdateOf(before, after, olmcore.Cause{Reason: reason, Message: why})
	a.As = s.Account
	return a
}

// recreate deletes an object that cannot be updated as needed. The next call creates it again.
func (s *Backends) recreate(o olmcore.Object, why string) olmcore.Action {
	a := olmcore.DeleteOf(o, olmcore.Cause{Reason: ReasonInstall, Message: why})
	a.As = s.Account
	return a
}

// objects contains the writes of the objects that one Deployment needs besides its certificate, and the first problem.
type objects struct {
	actions []olmcore.Action
	problem string
}

// part adds the action for one object, or nothing if the action is nil. It keeps the first problem that is not empty.
func (o *objects) part(a olmcore.Action, problem string) {
	o.problem = cmp.Or(o.problem, problem)
	if a != nil {
		o.actions = append(o.actions, a)
	}
}

// objectsOf returns the writes of the objects of a Deployment.
func (s *Backends) objectsOf(deployment string) (o objects) {
	spec := s.specOf(deployment)
	account := cmp.Or(spec.Template.Spec.ServiceAccountName, defaultAccount)
	o.part(s.service(deployment, spec))
	o.part(s.role(deployment))
	o.part(s.roleBinding(deployment, account))
	o.part(s.delegator(deployment, account))
	o.part(s.reader(deployment, account))
	return o
}

// specOf returns the spec of a Deployment of the strategy.
func (s *Backends) specOf(deployment string) *appsv1.DeploymentSpec {
	specs := s.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	for i := range specs {
		if specs[i].Name == deployment {
			return &specs[i].Spec
		}
	}
	return &appsv1.DeploymentSpec{}
}

// portsOf returns the distinct ports on which a Deployment is called, sorted, and a problem if two target ports
// conflict.
//
// Source: operator-lifecycle-manager pkg/controller/install/certresources.go.
func (s *Backends) portsOf(deployment string) (ports []corev1.ServicePort, problem string) {
	add := func(port int32, target *intstr.IntOrString) {
		port = cmp.Or(port, 443)
		if target == nil || *target == (intstr.IntOrString{}) {
			target = new(intstr.FromInt32(port))
		}
		p := corev1.ServicePort{Name: strconv.Itoa(int(port)), Port: port, TargetPort: *target, Protocol: corev1.ProtocolTCP}
		i, found := slices.BinarySearchFunc(ports, p, func(a, b corev1.ServicePort) int { return cmp.Compare(a.Port, b.Port) })
		switch {
		case !found:
			ports = slices.Insert(ports, i, p)
		case ports[i].TargetPort != p.TargetPort:
			problem = cmp.Or(problem, fmt.Sprintf("port %d of deployment %s has two target ports: %s and %s",
				port, deployment, &ports[i].TargetPort, &p.TargetPort))
		}
	}
	for _, d := range s.CSV.Spec.APIServiceDefinitions.Owned {
		if d.DeploymentName == deployment {
			add(d.ContainerPort, nil)
		}
	}
	for i := range s.CSV.Spec.WebhookDefinitions {
		if w := &s.CSV.Spec.WebhookDefinitions[i]; w.DeploymentName == deployment {
			add(w.ContainerPort, w.TargetPort)
		}
	}
	return ports, problem
}

// service returns the write of the Service. It keeps ports and selector entries that others added, as server-side apply
// would.
func (s *Backends) service(deployment string, spec *appsv1.DeploymentSpec) (olmcore.Action, string) {
	name := ServiceName(deployment)
	if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
		return nil, fmt.Sprintf("deployment %s cannot be called: %q is not a valid name of a Service: %s", deployment, name, problems[0])
	}
	ports, problem := s.portsOf(deployment)
	if problem != "" {
		return nil, problem
	}
	var selector map[string]string
	if spec.Selector != nil {
		selector = spec.Selector.MatchLabels
	}
	live, found := model.Find(s.Objects.Services.Items, s.CSV.Namespace, name)
	switch {
	case !found:
		return s.create(&corev1.Service{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: s.meta(name),
			Spec: corev1.ServiceSpec{Ports: ports, Selector: maps.Clone(selector)},
		}, ReasonInstall, "service "+name+" does not exist"), ""
	case !isClaimable(live):
		return nil, fmt.Sprintf("service %s exists and is not managed by an operator", name)
	}
	meta, changed := s.claimed(live.ObjectMeta)
	selected, reselected := olmcore.MergeMaps(live.Spec.Selector, selector)
	merged := mergePorts(live.Spec.Ports, ports)
	if !changed && !reselected && slices.Equal(live.Spec.Ports, merged) {
		return nil, ""
	}
	after := live.DeepCopy()
	after.ObjectMeta = meta
	after.Spec.Selector = selected
	after.Spec.Ports = merged
	return s.update(live, after, ReasonInstall, "service "+name+" does not match this version"), ""
}

// mergePorts replaces the ports with the same number and protocol, and adds the others. It removes a port of another
// number that has a needed name.
func mergePorts(have, want []corev1.ServicePort) []corev1.ServicePort {
	merged := slices.Clone(have)
	for _, w := range want {
		same := func(p corev1.ServicePort) bool {
			return p.Port == w.Port && cmp.Or(p.Protocol, corev1.ProtocolTCP) == w.Protocol
		}
		merged = slices.DeleteFunc(merged, func(p corev1.ServicePort) bool { return p.Name == w.Name && !same(p) })
		if i := slices.IndexFunc(merged, same); i >= 0 {
			merged[i].Name, merged[i].TargetPort = w.Name, w.TargetPort
		} else {
			merged = append(merged, w)
		}
	}
	return merged
}

// role returns the write of the Role that lets the operator read its certificate.
func (s *Backends) role(deployment string) (olmcore.Action, string) {
	name := CertificateName(deployment)
	want := &rbacv1.Role{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"}, ObjectMeta: s.meta(name),
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"},
			ResourceNames: []string{name}}},
	}
	live, found := model.Find(s.Objects.Roles.Items, s.CSV.Namespace, name)
	switch {
	case !found:
		return s.create(want, ReasonInstall, "role "+name+" does not exist"), ""
	case !isClaimable(live):
		return nil, fmt.Sprintf("role %s exists and is not managed by an operator", name)
	}
	meta, changed := s.claimed(live.ObjectMeta)
	if !changed && equality.Semantic.DeepEqual(live.Rules, want.Rules) {
		return nil, ""
	}
	after := live.DeepCopy()
	after.ObjectMeta, after.Rules = meta, want.Rules
	return s.update(live, after, ReasonInstall, "role "+name+" does not match this version"), ""
}

func (s *Backends) roleBinding(deployment, account string) (olmcore.Action, string) {
	name := CertificateName(deployment)
	live, found := model.Find(s.Objects.RoleBindings.Items, s.CSV.Namespace, name)
	want := &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding"}, ObjectMeta: s.meta(name),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: s.subjects(account),
	}
	switch {
	case !found:
		return s.create(want, ReasonInstall, "rolebinding "+name+" does not exist"), ""
	case !isClaimable(live):
		return nil, fmt.Sprintf("rolebinding %s exists and is not managed by an operator", name)
	case live.RoleRef != want.RoleRef:
		return s.recreate(live, "rolebinding "+name+" binds another role"), ""
	}
	meta, changed := s.claimed(live.ObjectMeta)
	if !changed && s.areSubjects(live.Subjects, account) {
		return nil, ""
	}
	after := live.DeepCopy()
	after.ObjectMeta, after.Subjects = meta, want.Subjects
	return s.update(live, after, ReasonInstall, "rolebinding "+name+" does not match this version"), ""
}

func (s *Backends) subjects(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.CSV.Namespace, Name: account}}
}

// areSubjects reports whether the account is the only subject of a binding. OLM omits the namespace of a subject in the
// namespace of the binding.
func (s *Backends) areSubjects(have []rbacv1.Subject, account string) bool {
	return len(have) == 1 && have[0].Kind == rbacv1.ServiceAccountKind && have[0].Name == account &&
		cmp.Or(have[0].Namespace, s.CSV.Namespace) == s.CSV.Namespace
}

// Names of built-in roles of Kubernetes.
const (
	delegatorRole = "system:auth-delegator"
	readerRole    = "extension-apiserver-authentication-reader"
)

// isOfNamespace reports whether a binding outside the namespace is for Deployments of the namespace. Its owner labels
// name a CSV of the namespace. OLM does not label all bindings. So the result is also true for a binding without owner
// labels if all its subjects are ServiceAccounts of the namespace.
func isOfNamespace(labels map[string]string, subjects []rbacv1.Subject, namespace string) bool {
	if owner, ok := olmcore.OwnerOf(labels); ok {
		return owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == namespace
	}
	return labels[olmcore.LabelManaged] == "true" && IsBindingOf(subjects, namespace)
}

// IsBindingOf reports whether all subjects of a binding are ServiceAccounts of a namespace. It returns false if the
// binding has no subjects.
func IsBindingOf(subjects []rbacv1.Subject, namespace string) bool {
	isOfAnother := func(s rbacv1.Subject) bool { return s.Kind != rbacv1.ServiceAccountKind || s.Namespace != namespace }
	return len(subjects) > 0 && !slices.ContainsFunc(subjects, isOfAnother)
}

// choose returns the first existing binding of the namespace that has one of the names. If there is none, it returns
// the first name that is free. If other owners use all names, both results are empty.
func choose[T olmcore.Object](live []T, inNamespace string, names []string, isOurs func(T) bool) (ours T, name string) {
	var free string
	for _, candidate := range names {
		o, found := model.Find(live, inNamespace, candidate)
		switch {
		case found && isOurs(o):
			return o, candidate
		case !found && free == "":
			free = candidate
		}
	}
	return ours, free
}

// labelled returns the labels of a binding outside the namespace, merged with the desired ones, and reports whether
// they must be updated now. Bindings that OLM created for the CSV lack its UID. They get it once the operator is
// installed again.
func (s *Backends) labelled(have, want map[string]string) (labels map[string]string, changed bool) {
	labels, changed = olmcore.MergeMaps(have, want)
	isOLMs := have[olmcore.LabelManaged] == "true" && model.OwnerWithUID(s.CSV).Owns(have)
	return labels, changed && (!isOLMs || s.isBeingInstalled())
}

func (s *Backends) isBeingInstalled() bool {
	return s.CSV.Status.Phase == v1alpha1.CSVPhaseInstallReady
}

// delegator returns the write of the ClusterRoleBinding with which the operator asks the API server whether its callers
// are authorized.
func (s *Backends) delegator(deployment, account string) (olmcore.Action, string) {
	names := DelegatorNames(deployment, s.CSV.Namespace)
	live, name := choose(s.Objects.ClusterRoleBindings.Items, metav1.NamespaceAll, names, func(b *rbacv1.ClusterRoleBinding) bool {
		return isOfNamespace(b.Labels, b.Subjects, s.CSV.Namespace)
	})
	want := &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: s.outsideMeta("", name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: delegatorRole},
		Subjects:   s.subjects(account),
	}
	switch {
	case name == "":
		return nil, fmt.Sprintf("clusterrolebinding %s belongs to another owner", names[0])
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
	return s.update(live, after, ReasonInstall, "clusterrolebinding "+name+" does not match this version"), ""
}

// reader returns the write of the RoleBinding with which the operator reads the certificates that identify the API
// server.
//
// Differs: OLM does not label the RoleBinding, so no cleanup finds it. A RoleBinding of OLM gets the labels when the
// operator is installed again.
func (s *Backends) reader(deployment, account string) (olmcore.Action, string) {
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
		return nil, fmt.Sprintf("rolebinding %s/%s belongs to another owner", metav1.NamespaceSystem, names[0])
	case live == nil:
		return s.create(want, ReasonInstall, "rolebinding "+name+" does not exist in kube-system"), ""
	case live.RoleRef != want.RoleRef:
		return s.recreate(live, "rolebinding "+name+" in kube-system binds another role"), ""
	}
	labels, changed := s.labelled(live.Labels, want.Labels)
	_, isLabelled := olmcore.OwnerOf(live.Labels)
	if !isLabelled && !s.isBeingInstalled() {
		changed = false // OLM does not label it
	}
	if !changed && s.areSubjects(live.Subjects, account) {
		return nil, ""
	}
	after := live.DeepCopy()
	after.Labels, after.Subjects = labels, want.Subjects
	return s.update(live, after, ReasonInstall, "rolebinding "+name+" in kube-system does not match this version"), ""
}
