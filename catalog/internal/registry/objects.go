// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/olmcore/olm/internal/objecthash"
	"github.com/olmcore/olm/internal/ownerrefs"
	"github.com/olmcore/olm/olmcore"
)

// Objects contains the objects of a CatalogSource other than its Pods: either the observed objects or the needed ones.
// A field is nil if its object does not exist or is not needed.
type Objects struct {
	// Account is the ServiceAccount that the source type of the CatalogSource uses. OtherAccount is the ServiceAccount of
	// the other source types. OtherAccount may still exist after a change of the source type.
	Account, OtherAccount      *corev1.ServiceAccount
	Role                       *rbacv1.Role
	RoleBinding                *rbacv1.RoleBinding
	ServerPolicy, UnpackPolicy *networkingv1.NetworkPolicy
	Service                    *corev1.Service
	Budget                     *policyv1.PodDisruptionBudget
}

// neededObjects builds the objects that should exist.
func (r *Registry) neededObjects() Objects {
	name := r.Source.Name
	o := Objects{
		Account: &corev1.ServiceAccount{ObjectMeta: r.meta(name, managed()), ImagePullSecrets: slices.Clone(r.pullSecrets)},
		Service: &corev1.Service{ObjectMeta: r.meta(ServiceName(name), managed()), Spec: r.serviceSpec()},
		ServerPolicy: &networkingv1.NetworkPolicy{
			ObjectMeta: r.meta(name+SuffixServerPolicy, servingLabels(name)), Spec: r.serverPolicySpec(),
		},
		UnpackPolicy: &networkingv1.NetworkPolicy{
			ObjectMeta: r.meta(name+SuffixUnpackPolicy, servingLabels(name)), Spec: unpackPolicySpec(),
		},
	}
	o.Service.Labels[labelServiceHash], _ = objecthash.Hash(o.Service.Spec)
	if FromConfigMap(r.Source) {
		o.Account.Name = name + SuffixAccount
		o.Role = &rbacv1.Role{ObjectMeta: r.meta(name+SuffixRole, managed()), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"},
			ResourceNames: []string{r.Source.Spec.ConfigMap}, Verbs: []string{"get"},
		}}}
		o.RoleBinding = &rbacv1.RoleBinding{
			ObjectMeta: r.meta(name+SuffixBinding, managed()),
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name + SuffixAccount, Namespace: r.Source.Namespace}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name + SuffixRole},
		}
	} else {
		owner := &o.Account.OwnerReferences[0]
		owner.Controller = new(true)
		owner.BlockOwnerDeletion = new(true)
		if ours := ownPullSecrets(r.Source); len(ours) > 0 {
			o.Account.Annotations = map[string]string{keyPullSecrets: strings.Join(ours, ",")}
		}
	}
	if r.Replicas >= 2 {
		// The budget allows voluntary disruptions of one replica at a time. minAvailable must be a number. The owner
		// of the Pods has no scale, so with a percentage or maxUnavailable the disruption controller would allow no
		// disruption at all.
		o.Budget = &policyv1.PodDisruptionBudget{ObjectMeta: r.meta(ServiceName(name), managed()), Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(int32(r.Replicas - 1))), UnhealthyPodEvictionPolicy: new(policyv1.AlwaysAllow),
			Selector: &metav1.LabelSelector{MatchLabels: servingLabels(name)},
		}}
	}
	return o
}

func managed() map[string]string { return map[string]string{olmcore.LabelManaged: "true"} }

func (r *Registry) meta(name string, labels map[string]string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: r.Source.Namespace, Labels: labels,
		OwnerReferences: []metav1.OwnerReference{olmcore.OwnerReferenceTo(r.Source)},
	}
}

// ownPullSecrets returns the names in spec.secrets, each once.
func ownPullSecrets(cs *v1alpha1.CatalogSource) (names []string) {
	for _, name := range cs.Spec.Secrets {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// accountSecrets returns the pull secrets that the ServiceAccount should have: those in spec.secrets, and those that
// others added to the observed ServiceAccount. An annotation records the secrets that came from spec.secrets, so that
// they are removed once the spec does not contain them any more.
func (r *Registry) accountSecrets(account *corev1.ServiceAccount) (secrets []corev1.LocalObjectReference) {
	if FromConfigMap(r.Source) {
		return nil
	}
	ours := ownPullSecrets(r.Source)
	if account != nil {
		secrets = slices.Clone(account.ImagePullSecrets)
		if r.AccountShared {
			return secrets
		}
		before := strings.Split(account.Annotations[keyPullSecrets], ",")
		secrets = slices.DeleteFunc(secrets, func(s corev1.LocalObjectReference) bool {
			return s.Name != "" && slices.Contains(before, s.Name) && !slices.Contains(ours, s.Name)
		})
	}
	for _, name := range ours {
		secret := corev1.LocalObjectReference{Name: name}
		if !slices.Contains(secrets, secret) {
			secrets = append(secrets, secret)
		}
	}
	return secrets
}

func (r *Registry) serviceSpec() corev1.ServiceSpec {
	spec := corev1.ServiceSpec{
		Ports:    []corev1.ServicePort{{Name: GRPC, Port: port, TargetPort: intstr.FromInt32(port)}},
		Selector: servingLabels(r.Source.Name),
	}
	if FromConfigMap(r.Source) {
		delete(spec.Selector, olmcore.LabelManaged)
	}
	return spec
}

// serverPolicySpec allows connections to the port of the registry. Connections from the registry are only allowed if
// it reads a ConfigMap.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, DesiredGRPCServerNetworkPolicy.
func (r *Registry) serverPolicySpec() networkingv1.NetworkPolicySpec {
	spec := networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: servingLabels(r.Source.Name)},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Ingress: []networkingv1.NetworkPolicyIngressRule{{
			Ports: []networkingv1.NetworkPolicyPort{policyPort(corev1.ProtocolTCP, port)},
		}},
	}
	if FromConfigMap(r.Source) {
		spec.Egress = connectAnywhere()
	}
	return spec
}

// unpackPolicySpec allows all connections from the Pods that unpack bundles, and none to them.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, DesiredUnpackBundlesNetworkPolicy.
func unpackPolicySpec() networkingv1.NetworkPolicySpec {
	return networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: labelBundleUnpack, Operator: metav1.LabelSelectorOpExists},
			{Key: olmcore.LabelManaged, Operator: metav1.LabelSelectorOpIn, Values: []string{"true"}},
		}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
		Egress:      connectAnywhere(),
	}
}

// connectAnywhere allows all connections. Like OLM, it also lists the ports of DNS.
func connectAnywhere() []networkingv1.NetworkPolicyEgressRule {
	return []networkingv1.NetworkPolicyEgressRule{{}, {Ports: []networkingv1.NetworkPolicyPort{
		policyPort(corev1.ProtocolTCP, 53), policyPort(corev1.ProtocolUDP, 53),
		policyPort(corev1.ProtocolTCP, 5353), policyPort(corev1.ProtocolUDP, 5353),
	}}}
}

func policyPort(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))}
}

// Reasons of actions. Package catalog documents them.
const (
	ReasonObjectMissing  = "ObjectMissing"
	ReasonObjectDiffers  = "ObjectDiffers"
	ReasonBudgetObsolete = "BudgetObsolete"
)

// OfOthers reports whether an object does not belong to the CatalogSource, and must not be changed. An object belongs
// to the CatalogSource in these cases:
//   - One of its owner references has the UID of the CatalogSource.
//   - It has owner references, and all of them are to a CatalogSource of this name.
//   - It has no owner reference, and its label olm.managed is true.
func OfOthers(cs *v1alpha1.CatalogSource, o olmcore.Object) bool {
	owners := o.GetOwnerReferences()
	switch {
	case olmcore.OwnedBy(o, cs.UID):
		return false
	case len(owners) == 0:
		return o.GetLabels()[olmcore.LabelManaged] != "true"
	}
	return slices.ContainsFunc(owners, func(ref metav1.OwnerReference) bool {
		return ref.Kind != v1alpha1.CatalogSourceKind || ref.Name != cs.Name || !strings.HasPrefix(ref.APIVersion, v1alpha1.GroupName+"/")
	})
}

// inDeletionOrder returns the objects in the order in which they are deleted. Objects that do not exist are nil.
func (o *Objects) inDeletionOrder() [8]olmcore.Object {
	return [...]olmcore.Object{
		orNil(o.Service), orNil(o.ServerPolicy), orNil(o.UnpackPolicy), orNil(o.Budget),
		orNil(o.Account), orNil(o.OtherAccount), orNil(o.Role), orNil(o.RoleBinding),
	}
}

// orNil returns an untyped nil for a nil pointer.
func orNil[T any, O interface {
	*T
	olmcore.Object
}](o O) olmcore.Object {
	if o == nil {
		return nil
	}
	return o
}

// Taken returns the name of the first needed object that exists and is unmanaged or owned by another. Taken returns an
// empty string if there is none. Taken ignores the ServiceAccount, because a ServiceAccount of another owner is used
// without changes.
func (r *Registry) Taken() string {
	needed := r.Needed.inDeletionOrder()
	for i, o := range r.Observed.inDeletionOrder() {
		if o != nil && needed[i] != nil && o != olmcore.Object(r.Observed.Account) && OfOthers(r.Source, o) {
			return o.GetName()
		}
	}
	return ""
}

// Leftovers returns the objects that the CatalogSource owns but does not need, in the order of their deletion.
func (r *Registry) Leftovers() (list []olmcore.Object) {
	needed := r.Needed.inDeletionOrder()
	for i, o := range r.Observed.inDeletionOrder() {
		if o != nil && needed[i] == nil && olmcore.OwnedBy(o, r.Source.UID) && o.GetDeletionTimestamp() == nil {
			list = append(list, o)
		}
	}
	return list
}

// Unread has a field for each optional kind. The field is true if the kind was not read. Objects of such a kind are not
// created.
type Unread struct{ NetworkPolicies, Roles, RoleBindings, Budgets bool }

// Repair returns the actions that create missing objects, and update objects that differ from the needed ones. Repair
// also deletes a RoleBinding with another roleRef, and a PodDisruptionBudget that is no longer needed. No action
// changes an object that belongs to another owner.
func (r *Registry) Repair() (actions []olmcore.Action) {
	for _, action := range []olmcore.Action{
		r.repairAccount(),
		r.repairRole(),
		r.repairRoleBinding(),
		r.repairPolicy(r.Observed.ServerPolicy, r.Needed.ServerPolicy),
		r.repairPolicy(r.Observed.UnpackPolicy, r.Needed.UnpackPolicy),
		r.repairService(),
		r.repairBudget(),
	} {
		if action != nil {
			actions = append(actions, action)
		}
	}
	return actions
}

// same reports whether two values are semantically equal. Most values are identical, which reflect.DeepEqual finds
// faster.
func same(observed, needed any) bool {
	return reflect.DeepEqual(observed, needed) || equality.Semantic.DeepEqual(observed, needed)
}

// create returns the action that creates a missing object, unless its kind was not read.
func create(needed olmcore.Object, unread bool) olmcore.Action {
	if unread {
		return nil
	}
	return olmcore.CreateOf(needed, olmcore.Cause{Reason: ReasonObjectMissing, Message: "the catalog needs it"})
}

func differs(message string) olmcore.Cause {
	return olmcore.Cause{Reason: ReasonObjectDiffers, Message: message}
}

// mayUpdate reports whether an object may be changed: it is not being deleted, and it does not belong to others.
func mayUpdate(cs *v1alpha1.CatalogSource, observed olmcore.Object) bool {
	return observed.GetDeletionTimestamp() == nil && !OfOthers(cs, observed)
}

// hasMetadata reports whether an object has the labels and the owner of the needed object.
func hasMetadata(cs *v1alpha1.CatalogSource, observed, needed olmcore.Object) bool {
	_, relabelled := olmcore.MergeMaps(observed.GetLabels(), needed.GetLabels())
	return !relabelled && olmcore.OwnedBy(observed, cs.UID)
}

// repairMetadata adds the labels and the owner of the needed object.
func repairMetadata(cs *v1alpha1.CatalogSource, after, needed olmcore.Object) {
	labels, _ := olmcore.MergeMaps(after.GetLabels(), needed.GetLabels())
	after.SetLabels(labels)
	if !olmcore.OwnedBy(after, cs.UID) {
		owners, _ := ownerrefs.Repair(after.GetOwnerReferences(), needed.GetOwnerReferences())
		after.SetOwnerReferences(owners)
	}
}

// repairAccount returns the action that creates or updates the ServiceAccount, or nil. A ServiceAccount of others is
// not changed. If the content comes from a ConfigMap, the server needs no pull secrets, so those that others added are
// kept.
func (r *Registry) repairAccount() olmcore.Action {
	observed, needed := r.Observed.Account, r.Needed.Account
	switch {
	case r.AccountShared || needed == nil:
		return nil
	case observed == nil:
		return create(needed, false)
	}
	hasSecrets := FromConfigMap(r.Source) || slices.Equal(observed.ImagePullSecrets, needed.ImagePullSecrets)
	if !mayUpdate(r.Source, observed) || hasSecrets && hasMetadata(r.Source, observed, needed) {
		return nil
	}
	after := observed.DeepCopy()
	repairMetadata(r.Source, after, needed)
	if !hasSecrets {
		after.ImagePullSecrets = needed.ImagePullSecrets
		delete(after.Annotations, keyPullSecrets)
		after.Annotations, _ = olmcore.MergeMaps(after.Annotations, needed.Annotations)
	}
	return olmcore.UpdateOf(observed, after, differs("label, owner or pull secrets differ"))
}

func (r *Registry) repairRole() olmcore.Action {
	observed, needed := r.Observed.Role, r.Needed.Role
	switch {
	case needed == nil:
		return nil
	case observed == nil:
		return create(needed, r.Unread.Roles)
	}
	hasRules := same(observed.Rules, needed.Rules)
	if !mayUpdate(r.Source, observed) || hasRules && hasMetadata(r.Source, observed, needed) {
		return nil
	}
	after := observed.DeepCopy()
	repairMetadata(r.Source, after, needed)
	if !hasRules {
		after.Rules = needed.Rules
	}
	return olmcore.UpdateOf(observed, after, differs("label, owner or rules differ"))
}

// repairRoleBinding deletes a RoleBinding with another roleRef, because the API server does not allow a change of the
// roleRef. The next reconcile creates the RoleBinding again.
func (r *Registry) repairRoleBinding() olmcore.Action {
	observed, needed := r.Observed.RoleBinding, r.Needed.RoleBinding
	switch {
	case needed == nil:
		return nil
	case observed == nil:
		return create(needed, r.Unread.RoleBindings)
	}
	hasSubjects := same(observed.Subjects, needed.Subjects)
	hasRole := observed.RoleRef == needed.RoleRef
	switch {
	case !mayUpdate(r.Source, observed) || hasRole && hasSubjects && hasMetadata(r.Source, observed, needed):
		return nil
	case !hasRole:
		return olmcore.DeleteOf(observed, differs("it references another role and is created again"))
	}
	after := observed.DeepCopy()
	repairMetadata(r.Source, after, needed)
	if !hasSubjects {
		after.Subjects = needed.Subjects
	}
	return olmcore.UpdateOf(observed, after, differs("label, owner or subjects differ"))
}

func (r *Registry) repairPolicy(observed, needed *networkingv1.NetworkPolicy) olmcore.Action {
	switch {
	case needed == nil:
		return nil
	case observed == nil:
		return create(needed, r.Unread.NetworkPolicies)
	}
	hasSpec := same(observed.Spec, needed.Spec)
	if !mayUpdate(r.Source, observed) || hasSpec && hasMetadata(r.Source, observed, needed) {
		return nil
	}
	after := observed.DeepCopy()
	repairMetadata(r.Source, after, needed)
	if !hasSpec {
		after.Spec = needed.Spec
	}
	return olmcore.UpdateOf(observed, after, differs("labels, owner or spec differ"))
}

func (r *Registry) repairService() olmcore.Action {
	observed, needed := r.Observed.Service, r.Needed.Service
	switch {
	case needed == nil:
		return nil
	case observed == nil:
		return create(needed, false)
	}
	hasSpec := hasServiceSpec(observed, needed)
	if !mayUpdate(r.Source, observed) || hasSpec && hasMetadata(r.Source, observed, needed) {
		return nil
	}
	after := observed.DeepCopy()
	repairMetadata(r.Source, after, needed)
	if !hasSpec {
		after.Spec.Ports, after.Spec.Selector = needed.Spec.Ports, needed.Spec.Selector
	}
	return olmcore.UpdateOf(observed, after, differs("labels, owner or spec differ"))
}

// hasServiceSpec reports whether a Service has the needed ports and selector. The API server sets the other fields.
func hasServiceSpec(observed, needed *corev1.Service) bool {
	var ports []corev1.ServicePort
	for _, p := range observed.Spec.Ports {
		port := corev1.ServicePort{Name: p.Name, Port: p.Port, TargetPort: p.TargetPort}
		if p.Protocol != "" && p.Protocol != corev1.ProtocolTCP {
			port.Protocol = p.Protocol
		}
		ports = append(ports, port)
	}
	return slices.Equal(ports, needed.Spec.Ports) && maps.Equal(observed.Spec.Selector, needed.Spec.Selector)
}

// repairBudget creates or updates the PodDisruptionBudget. If the catalog has one replica, it deletes the
// PodDisruptionBudget.
func (r *Registry) repairBudget() olmcore.Action {
	observed, needed := r.Observed.Budget, r.Needed.Budget
	switch {
	case observed == nil && needed == nil:
		return nil
	case observed == nil:
		return create(needed, r.Unread.Budgets)
	case needed == nil:
		if observed.DeletionTimestamp == nil && olmcore.OwnedBy(observed, r.Source.UID) {
			const message = "a catalog with one replica needs no PodDisruptionBudget"
			return olmcore.DeleteOf(observed, olmcore.Cause{Reason: ReasonBudgetObsolete, Message: message})
		}
		return nil
	}
	hasSpec := same(observed.Spec, needed.Spec)
	if !mayUpdate(r.Source, observed) || hasSpec && hasMetadata(r.Source, observed, needed) {
		return nil
	}
	after := observed.DeepCopy()
	repairMetadata(r.Source, after, needed)
	if !hasSpec {
		after.Spec = needed.Spec
	}
	return olmcore.UpdateOf(observed, after, differs("label, owner or spec differ"))
}

// ServesAsInOLM reports whether the objects pass OLM's health check of a registry. The ServiceAccount, the Service,
// both NetworkPolicies and the needed Role and RoleBinding must exist. Kinds that were not read are ignored. The
// NetworkPolicies must have the needed specs.
//
// Source: operator-lifecycle-manager pkg/controller/registry/reconciler, CheckRegistryServer.
func (r *Registry) ServesAsInOLM() bool {
	observed := &r.Observed
	needed := &r.Needed
	policy := func(have, want *networkingv1.NetworkPolicy) bool {
		return have == nil && r.Unread.NetworkPolicies || have != nil && equality.Semantic.DeepEqual(have.Spec, want.Spec)
	}
	return observed.Account != nil && observed.Service != nil &&
		policy(observed.ServerPolicy, needed.ServerPolicy) && policy(observed.UnpackPolicy, needed.UnpackPolicy) &&
		(needed.Role == nil || observed.Role != nil || r.Unread.Roles) &&
		(needed.RoleBinding == nil || observed.RoleBinding != nil || r.Unread.RoleBindings)
}
