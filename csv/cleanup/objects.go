// SPDX-License-Identifier: Apache-2.0

package cleanup

import (
	"slices"
	"strings"
	"time"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	internalserving "github.com/olmcore/olm/csv/internal/serving"
	"github.com/olmcore/olm/olmcore"
)

// countsByLabel reports whether owner labels are enough to delete an object. They are enough only where tenants cannot
// write. In other namespaces, a user may label an object as owned by a ClusterServiceVersion of another namespace.
func countsByLabel(key olmcore.Key) bool {
	return key.Namespace == metav1.NamespaceAll ||
		key.Namespace == metav1.NamespaceSystem && key.Group == rbacv1.GroupName && key.Kind == "RoleBinding"
}

// stageOf returns the stage that deletes an object with the owner labels of the ClusterServiceVersion. It is empty for
// CRDs and Namespaces, which are never deleted.
func stageOf(key olmcore.Key) Stage {
	switch {
	case key.Group == rbacv1.GroupName:
		return StageRBAC
	case key.Group == admissionregistrationv1.GroupName && strings.HasSuffix(key.Kind, "WebhookConfiguration"):
		return StageAdmission
	case key.Group == apiregistrationv1.GroupName && key.Kind == "APIService":
		return StageAPIServices
	case key.Kind == "CustomResourceDefinition" || key.Kind == "Namespace":
		return ""
	}
	return StageOthers
}

// findLabelled returns the objects of a stage that have the owner labels.
func findLabelled(f *facts, s Stage) found {
	switch {
	case !model.IsLabelValue(f.c.Name):
		return found{}
	case !f.in.ClusterObjects.Complete:
		return found{unread: []string{read.OwnedList(f.in.Unread)}}
	}
	all := f.labelled[s]
	all.targets, all.skipped = slices.SortedFunc(slices.Values(all.targets), compareTargets), slices.Clip(all.skipped)
	if len(all.targets) > 0 {
		all.unread = slices.Concat(
			read.Missing(f.in.Sharers, "ClusterServiceVersions that need the same objects"),
			read.Missing(f.in.InstallPlans, "InstallPlans with the same objects"),
			read.Missing(f.in.SharerGroups, "OperatorGroups of these InstallPlans"),
		)
	}
	if len(all.unread) > 0 {
		all.targets = nil // none of them may be deleted
	}
	return all
}

// observeLabelled returns the cluster-scoped objects of the ClusterServiceVersion by the stage that deletes them or
// hands them over.
func (f *facts) observeLabelled() map[Stage]found {
	sharers := model.IndexNextOwners(model.OwnerSources{
		ClusterServiceVersions: f.in.Sharers.Items, InstallPlans: f.in.InstallPlans.Items, OperatorGroups: f.in.SharerGroups.Items,
	})
	labelled := map[Stage]found{}
	for _, o := range f.in.ClusterObjects.Items {
		key := olmcore.KeyOf(o)
		isOurs := model.OwnerWithUID(f.c).Owns(o.GetLabels()) || f.isLeftToCoOwner(o)
		if !isOurs || f.isYounger(o) || !countsByLabel(key) {
			continue
		}
		stage := stageOf(key)
		all := labelled[stage]
		nextOwner := sharers.NextOwnerOf(o)
		switch {
		case model.IsOwnedByAnother(o.GetOwnerReferences(), f.c.UID):
			all.skipped = append(all.skipped, skip(olmcore.RefOf(o), "owned by another ClusterServiceVersion"))
		case nextOwner != nil && o.GetDeletionTimestamp() == nil && stage != "":
			all.targets = append(all.targets, handoverOf(f, o, nextOwner))
		default:
			all.targets = append(all.targets, deletionOf(f, o))
		}
		labelled[stage] = all
	}
	return labelled
}

// hasNeighbour reports whether a live version of the namespace passes a test. Versions of other namespaces are ignored,
// because no Service or Deployment of this namespace belongs to them.
func (f *facts) hasNeighbour(test func(*model.CSV) bool) bool {
	return slices.ContainsFunc(f.peers, func(p *model.CSV) bool { return p.Namespace == f.c.Namespace && test(p) })
}

// wasLeft reports whether all versions that something belongs to are of the namespace and no longer exist. The previous
// version left it to this version, which was deleted before it took it over.
func (f *facts) wasLeft(by ...types.NamespacedName) bool {
	stays := func(v types.NamespacedName) bool {
		is := func(p *model.CSV) bool { return p.Name == v.Name && p.Namespace == v.Namespace }
		return v.Namespace != f.c.Namespace || v.Name == f.c.Name ||
			slices.ContainsFunc(f.in.Neighbours.Items, is) || slices.ContainsFunc(f.in.Peers.Items, is)
	}
	return len(by) > 0 && f.in.Neighbours.Complete && !slices.ContainsFunc(by, stays)
}

// wasLeftByLabel is wasLeft for the version that the owner labels of an object name.
func (f *facts) wasLeftByLabel(o olmcore.Object) bool {
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	return ok && owner.Kind == v1alpha1.ClusterServiceVersionKind &&
		f.wasLeft(types.NamespacedName{Namespace: owner.Namespace, Name: owner.Name})
}

// isLeftToCoOwner reports whether an object belongs to this CSV because the CSV that its owner labels name is gone,
// without a cleanup, and the object records this CSV as a co-owner.
func (f *facts) isLeftToCoOwner(o olmcore.Object) bool {
	if !isCoOwned(o, f.c) {
		return false
	}
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	_, exists := model.Find(f.in.Sharers.Items, owner.Namespace, owner.Name)
	return !exists && !slices.ContainsFunc(f.in.InstallPlans.Items, func(p *v1alpha1.InstallPlan) bool { return installsOwner(p, o) })
}

// isCoOwned reports whether the owner labels of a cluster-scoped object name another CSV, and its annotations record c.
func isCoOwned(o olmcore.Object, c *model.CSV) bool {
	owner, ok := olmcore.OwnerOf(o.GetLabels())
	return ok && owner.Kind == v1alpha1.ClusterServiceVersionKind && o.GetNamespace() == metav1.NamespaceAll &&
		(owner.Namespace != c.Namespace || owner.Name != c.Name) &&
		model.IsCoOwner(c, o)
}

// installsOwner reports whether an unfinished InstallPlan is about to create the CSV that the owner labels of an object
// name.
func installsOwner(p *v1alpha1.InstallPlan, o olmcore.Object) bool {
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	return p.Namespace == owner.Namespace && slices.Contains(p.Spec.ClusterServiceVersionNames, owner.Name) &&
		p.Status.Phase != v1alpha1.InstallPlanPhaseComplete && p.Status.Phase != v1alpha1.InstallPlanPhaseFailed
}

// isYounger reports whether an object was created after the deletion, for example by the next installation. An object
// with the UID of this CSV belongs to this CSV in any case. Its creator had not observed the deletion yet.
func (f *facts) isYounger(o olmcore.Object) bool {
	if o.GetLabels()[olmcore.LabelOwnerUID] == string(f.c.UID) {
		return false
	}
	created := o.GetCreationTimestamp()
	return created.After(f.c.DeletionTimestamp.Time)
}

// deletionOf returns the target for an object that must be deleted.
func deletionOf(f *facts, o olmcore.Object) target {
	t := target{ref: olmcore.RefOf(o), deleted: o.GetDeletionTimestamp(), why: "deleting"}
	if t.deleted == nil {
		remove := olmcore.DeleteOf(o, olmcore.Cause{Reason: ReasonCleanup, Message: "ClusterServiceVersion " + f.c.Name + " is being deleted"})
		remove.PropagationPolicy = metav1.DeletePropagationBackground
		t.write = remove
		return t
	}
	t.why = "Terminating"
	if finalizers := o.GetFinalizers(); len(finalizers) > 0 {
		t.why += ", held by " + strings.Join(slices.Sorted(slices.Values(finalizers)), ", ")
	}
	return t
}

// handoverOf returns the target for an object that another ClusterServiceVersion needs too. The object stays, and its
// owner labels are changed to that ClusterServiceVersion.
func handoverOf(f *facts, o olmcore.Object, nextOwner *model.CSV) target {
	name := nextOwner.Namespace + "/" + nextOwner.Name
	return target{
		ref: olmcore.RefOf(o), why: "handing over to " + name, nextOwner: name,
		write: olmcore.UpdateOf(o, model.HandedOver(o, nextOwner), olmcore.Cause{
			Reason: ReasonHandedOver, Message: "ClusterServiceVersion " + name + " needs it too",
		}),
	}
}

func within(d time.Duration) limits { return limits{d, d, d, d} }

func compareTargets(a, b target) int { return a.ref.Compare(b.ref) }

// stages is the table of the stages. To add a stage, add a row.
var stages = []stage{
	{StageOperands, findOperands, limits{forbidden: usual.forbidden}, 100},
	{StageAdmission, findAdmission, usual, 0},
	{StageConversion, findConversions, usual, 0},
	{StageAPIServices, findAPIServices, usual, 0},
	{StageWorkload, findWorkload, within(drain), 0},
	{StageRBAC, findRBAC, usual, 0},
	{StageOthers, findOthers, within(othersHold), 0},
}

func findAdmission(f *facts) found { return findLabelled(f, StageAdmission) }

// notInstalledByThisCSV is the reason why a CRD is left alone that the ClusterServiceVersion only names. A user who can
// write a ClusterServiceVersion can name any CRD.
const notInstalledByThisCSV = "no InstallPlan recorded that the CRD was installed with this ClusterServiceVersion"

// findConversions returns the CRDs that a Service of the operator converts. A conversion webhook that does not answer
// makes every read of the custom resources fail. If the spec no longer describes a webhook, or the bundle contained the
// CRD with its conversion, another version that owns the CRD keeps the conversion.
func findConversions(f *facts) (all found) {
	ours := model.OwnedCRDNames(f.c)
	if len(ours) == 0 {
		return all
	}
	all.unread = read.Missing(f.in.CustomResourceDefinitions, "CustomResourceDefinitions")
	for _, crd := range f.in.CustomResourceDefinitions.Items {
		converts := func(w v1alpha1.WebhookDescription) bool { return slices.Contains(w.ConversionCRDs, crd.Name) }
		isConvertedBy := func(p *model.CSV) bool { return slices.ContainsFunc(p.Spec.WebhookDefinitions, converts) }
		isKeptBy := isConvertedBy
		if len(f.c.Spec.WebhookDefinitions) == 0 {
			isKeptBy = func(p *model.CSV) bool { return model.OwnedCRDNames(p).Has(crd.Name) }
		}
		switch {
		case crd.DeletionTimestamp != nil || !ours.Has(crd.Name) || !internalserving.IsConverted(f.c, crd):
		case !model.MayConvert(f.c, crd) && !f.wasLeft(model.Converters(crd)...):
			all.skipped = append(all.skipped, skip(olmcore.RefOf(crd), "its conversion webhook is kept: "+notInstalledByThisCSV))
		case !f.in.Peers.Complete:
			all.unread = []string{"ClusterServiceVersions of all namespaces"}
		case !f.hasNeighbour(isKeptBy):
			all.targets = append(all.targets, target{
				ref: olmcore.RefOf(crd), why: "resetting conversion",
				write: olmcore.UpdateOf(crd, internalserving.Unconverted(crd), olmcore.Cause{
					Reason: ReasonCleanup, Message: "the conversion webhook of CRD " + crd.Name + " is removed with ClusterServiceVersion " + f.c.Name,
				}),
			})
		}
	}
	slices.SortFunc(all.targets, compareTargets)
	return all
}

func findAPIServices(f *facts) found {
	all := findLabelled(f, StageAPIServices)
	if !f.in.WellKnown.Complete && len(f.c.Spec.APIServiceDefinitions.Owned) > 0 {
		all.unread = append(all.unread, "APIServices of the ClusterServiceVersion")
	}
	for _, o := range f.in.WellKnown.Items {
		if isAPIServiceOf(f.c, o.GetName()) && olmcore.KeyOf(o).Kind == "APIService" && f.wasLeftByLabel(o) && !f.isYounger(o) {
			all.targets = append(all.targets, deletionOf(f, o))
		}
	}
	slices.SortFunc(all.targets, compareTargets)
	all.targets = slices.DeleteFunc(all.targets, func(t target) bool {
		isTakenOver := f.superseded && f.hasNeighbour(func(p *model.CSV) bool { return isAPIServiceOf(p, t.ref.Name) })
		if isTakenOver {
			all.skipped = append(all.skipped, skip(t.ref, "a newer version provides it too, and takes it over"))
		}
		return isTakenOver
	})
	return all
}

func isAPIServiceOf(c *model.CSV, name string) bool {
	return slices.ContainsFunc(c.Spec.APIServiceDefinitions.Owned, func(d v1alpha1.APIServiceDescription) bool { return d.GetName() == name })
}

// findWorkload returns the Deployments, so that the operator stops before its permissions are deleted. It returns none
// if there are no permissions to delete, because garbage collection deletes all objects of the namespace.
func findWorkload(f *facts) found {
	if f.mode == ModeNamespaceGone {
		return found{}
	}
	all := findRBAC(f)
	if len(all.targets) == 0 {
		return all
	}
	all.targets, all.unread = nil, append(all.unread, read.Missing(f.in.Deployments, "Deployments")...)
	for _, d := range f.in.Deployments.Items {
		if !model.OwnsDeployment(f.c, d) || d.DeletionTimestamp != nil && f.in.Now.Sub(d.DeletionTimestamp.Time) >= drain {
			continue
		}
		t := deletionOf(f, d)
		if t.write != nil {
			t.write = deployment.Delete(d, olmcore.Cause{Reason: ReasonCleanup, Message: "the operator stops before its permissions are deleted"})
		}
		all.targets = append(all.targets, t)
	}
	slices.SortFunc(all.targets, compareTargets)
	return all
}

// findRBAC returns the permissions outside the namespace, bindings before roles.
func findRBAC(f *facts) found {
	all := findLabelled(f, StageRBAC)
	if !f.in.WellKnown.Complete && len(f.c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) > 0 {
		all.unread = append(all.unread, "ClusterRoleBindings and RoleBindings for serving certificates")
	}
	var expected []servingBinding
	if len(f.in.WellKnown.Items) > 0 {
		expected = servingBindings(f.c)
	}
	for _, o := range f.in.WellKnown.Items {
		i := slices.IndexFunc(expected, func(s servingBinding) bool { return s.key == olmcore.KeyOf(o) })
		declares := func(p *model.CSV) bool { return model.DeploymentNames(p).Has(expected[i].deployment) }
		if i >= 0 && f.in.WellKnown.Complete && isServingBinding(f, o) && !f.hasNeighbour(declares) {
			all.targets = append(all.targets, deletionOf(f, o))
		}
	}
	slices.SortFunc(all.targets, compareTargets)
	all.targets = slices.CompactFunc(all.targets, func(a, b target) bool { return a.ref.Key() == b.ref.Key() })
	var bindings, roles []target
	for _, t := range all.targets {
		if strings.HasSuffix(t.ref.Kind, "Binding") {
			bindings = append(bindings, t)
		} else {
			roles = append(roles, t)
		}
	}
	all.targets = slices.Concat(bindings, roles)
	return all
}

// servingBinding is a binding outside the namespace for serving certificates. OLM does not label it.
type servingBinding struct {
	key        olmcore.Key
	deployment string // the Deployment from whose name the name of the binding is derived
}

// servingBindings returns the bindings that the Deployments of a ClusterServiceVersion can have.
func servingBindings(c *model.CSV) (bindings []servingBinding) {
	for _, d := range c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		for _, name := range internalserving.DelegatorNames(d.Name, c.Namespace) {
			bindings = append(bindings, servingBinding{olmcore.Key{Group: rbacv1.GroupName, Kind: "ClusterRoleBinding", Name: name}, d.Name})
		}
		for _, name := range internalserving.ReaderNames(d.Name, c.Namespace) {
			key := olmcore.Key{Group: rbacv1.GroupName, Kind: "RoleBinding", Namespace: metav1.NamespaceSystem, Name: name}
			bindings = append(bindings, servingBinding{key, d.Name})
		}
	}
	return bindings
}

// isServingBinding reports whether a binding is for Deployments of the namespace and does not belong to another
// ClusterServiceVersion. All its subjects must be ServiceAccounts of the namespace.
func isServingBinding(f *facts, o olmcore.Object) bool {
	var subjects []rbacv1.Subject
	switch b := o.(type) {
	case *rbacv1.ClusterRoleBinding:
		subjects = b.Subjects
	case *rbacv1.RoleBinding:
		subjects = b.Subjects
	}
	_, hasOwner := olmcore.OwnerOf(o.GetLabels())
	return internalserving.IsBindingOf(subjects, f.c.Namespace) && o.GetLabels()[olmcore.LabelManaged] == "true" &&
		(!hasOwner || model.OwnerWithUID(f.c).Owns(o.GetLabels()) || f.wasLeftByLabel(o)) && !f.isYounger(o)
}

// findOthers returns the other objects outside the namespace, and the copies in other namespaces. The cleanup does not
// wait for a copy that is being deleted. It does not wait for a copy that was created long after the deletion either,
// because a user of that namespace could otherwise keep this ClusterServiceVersion from being deleted.
func findOthers(f *facts) found {
	all := findLabelled(f, StageOthers)
	all.unread = append(all.unread, read.Missing(f.in.Copies, "copies of the ClusterServiceVersion")...)
	var copies []target
	for _, o := range f.in.Copies.Items {
		switch {
		case o.DeletionTimestamp != nil || !isCopyOf(o, f.c):
		case o.CreationTimestamp.After(f.c.DeletionTimestamp.Add(othersHold)):
			all.skipped = append(all.skipped, skip(olmcore.RefOf(o), "created after the deletion"))
		default:
			copies = append(copies, deletionOf(f, o))
		}
	}
	all.targets = append(all.targets, slices.SortedFunc(slices.Values(copies), compareTargets)...)
	return all
}

// isCopyOf reports whether o is a copy of c, by its label.
func isCopyOf(o, c *model.CSV) bool { return model.IsCopyOf(model.OriginalKey(c), o) }
