// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/olmcore/olm/csv/internal/deployment"
	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// Priorities of a new APIService. Those of an existing APIService are kept.
const (
	groupPriorityMinimum = 2000
	versionPriority      = 15
)

// installAPIs returns the writes that create or update the APIServices. The writes also delete objects that very old
// versions of OLM created for an APIService. An APIService is skipped if it may not be created or taken over, is being
// deleted, or has no certificate.
func installAPIs(f *facts) (actions []olmcore.Action, problem string) {
	s := f.source
	for _, a := range f.apis {
		if write := s.write(a); write != nil {
			actions = append(actions, write)
		} else if a.live != nil && s.isAdoptable(a.live) && s.isRight(a) {
			actions = append(actions, s.legacy(a)...)
		}
	}
	return actions, ""
}

// write returns the action that creates or updates an APIService. It is nil if the APIService is up to date, or must
// not be written.
func (s Clients) write(a *api) olmcore.Action {
	if a.live != nil && (a.live.DeletionTimestamp != nil || !s.isAdoptable(a.live)) {
		return nil
	}
	bundle := s.wantedBundle(a.deployment, a.bundle(s.CSV.Namespace))
	if len(bundle) == 0 {
		return nil
	}
	if a.live == nil {
		if why, _ := (claims{s}).refused(a); why != "" {
			return nil
		}
		return s.create(a, bundle)
	}
	if s.isRight(a) && bytes.Equal(a.live.Spec.CABundle, bundle) {
		return nil
	}
	after := a.live.DeepCopy()
	after.Labels, _ = olmcore.MergeMaps(after.Labels, s.labels())
	after.Spec.Service = s.reference(a)
	after.Spec.CABundle = bundle
	after.Spec.InsecureSkipTLSVerify = false
	why := fmt.Sprintf("APIService %s does not match this version", a.name)
	update := olmcore.UpdateOf(a.live, after, olmcore.Cause{Reason: ReasonInstall, Message: why})
	update.As = s.Account
	return update
}

func (s Clients) create(a *api, bundle []byte) olmcore.Action {
	service := &apiregistrationv1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiregistrationv1.SchemeGroupVersion.String(), Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: a.name, Labels: s.labels()},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: a.group, Version: a.version, GroupPriorityMinimum: groupPriorityMinimum, VersionPriority: versionPriority,
			Service: s.reference(a), CABundle: bundle,
		},
	}
	if s.Config != nil {
		service.Annotations = maps.Clone(s.Config.Annotations)
	}
	deployment.LabelComponents(service, s.CSV)
	create := olmcore.CreateOf(service, olmcore.Cause{Reason: ReasonInstall, Message: "APIService " + a.name + " does not exist"})
	create.As = s.Account
	return create
}

// bundle returns the caBundle of the live APIService, or nil if it calls another Service.
func (a *api) bundle(namespace string) []byte {
	if a.live == nil || !a.calls(namespace) {
		return nil
	}
	return a.live.Spec.CABundle
}

func (s Clients) labels() map[string]string {
	labels := model.OwnerWithUID(s.CSV).Labels()
	labels[olmcore.LabelManaged] = "true"
	return labels
}

func (s Clients) reference(a *api) *apiregistrationv1.ServiceReference {
	return &apiregistrationv1.ServiceReference{Namespace: s.CSV.Namespace, Name: a.service(), Port: new(a.port)}
}

// calls reports whether the live APIService calls the desired Service.
func (a *api) calls(namespace string) bool {
	ref := a.live.Spec.Service
	return ref != nil && ref.Namespace == namespace && ref.Name == a.service()
}

// isRight reports whether the live APIService has all desired fields, except the caBundle.
func (s Clients) isRight(a *api) bool {
	ref := a.live.Spec.Service
	return model.OwnerWithUID(s.CSV).Owns(a.live.Labels) && a.live.Labels[olmcore.LabelManaged] == "true" &&
		a.calls(s.CSV.Namespace) && *cmp.Or(ref.Port, new(int32(defaultPort))) == a.port && !a.live.Spec.InsecureSkipTLSVerify
}

// removedAPIs returns the deletions of the APIServices whose owner labels contain the UID of this CSV and that its spec
// does not contain.
func removedAPIs(f *facts) (actions []olmcore.Action) {
	s := f.source
	for _, service := range s.APIServices {
		isDescription := func(d v1alpha1.APIServiceDescription) bool { return d.GetName() == service.Name }
		described := slices.ContainsFunc(s.CSV.Spec.APIServiceDefinitions.Owned, isDescription)
		if described || service.DeletionTimestamp != nil || !model.OwnerWithUID(s.CSV).Owns(service.Labels) {
			continue
		}
		remove := olmcore.DeleteOf(service, olmcore.Cause{
			Reason: ReasonNotOwned, Message: "the spec no longer contains APIService " + service.Name,
		})
		remove.As = s.Account
		actions = append(actions, remove)
	}
	slices.SortFunc(actions, deployment.ByTarget)
	return actions
}

// LegacyNames contains the names of the objects that very old versions of OLM created for an APIService:
//   - Service is the name of a Service.
//   - Certificate is the name of a Secret, a Role and a RoleBinding.
//   - Delegator is the name of a ClusterRoleBinding.
//   - Reader is the name of a RoleBinding in kube-system.
type LegacyNames struct{ Service, Certificate, Delegator, Reader string }

// LegacyNamesOf returns one LegacyNames for each APIService that a CSV owns.
func LegacyNamesOf(c *model.CSV) []LegacyNames {
	var names []LegacyNames
	for _, a := range apisOf(c, nil) {
		names = append(names, a.legacyNames())
	}
	return names
}

func (a *api) legacyNames() LegacyNames {
	return LegacyNames{strings.ReplaceAll(a.name, ".", "-"), a.name + "-cert", a.name + "-system:auth-delegator", a.name + "-auth-reader"}
}

// legacy returns the deletions of the objects that very old versions of OLM created for an APIService and named after
// it. Their owner labels must name the CSV. The APIService must already call its new Service.
func (s Clients) legacy(a *api) []olmcore.Action {
	names := a.legacyNames()
	isInUse := slices.ContainsFunc(DeploymentNames(s.CSV), func(d string) bool { return ServiceName(d) == names.Service })
	if s.Objects == nil || isInUse {
		return nil
	}
	var found []olmcore.Object
	found = collect(found, s.Objects.Services.Items, s.CSV.Namespace, names.Service)
	found = collect(found, s.Objects.Secrets.Items, s.CSV.Namespace, names.Certificate)
	found = collect(found, s.Objects.Roles.Items, s.CSV.Namespace, names.Certificate)
	found = collect(found, s.Objects.RoleBindings.Items, s.CSV.Namespace, names.Certificate)
	found = collect(found, s.Objects.ClusterRoleBindings.Items, "", names.Delegator)
	found = collect(found, s.Objects.RoleBindings.Items, metav1.NamespaceSystem, names.Reader)
	var actions []olmcore.Action
	for _, o := range found {
		if o.GetDeletionTimestamp() != nil || !model.OwnerWithUID(s.CSV).Owns(o.GetLabels()) {
			continue
		}
		why := "an old version of OLM created it for APIService " + a.name + ", and it is no longer used"
		remove := olmcore.DeleteOf(o, olmcore.Cause{Reason: ReasonLegacyObject, Message: why})
		remove.As = s.Account
		actions = append(actions, remove)
	}
	return actions
}

func collect[T olmcore.Object](found []olmcore.Object, items []T, namespace, name string) []olmcore.Object {
	if o, ok := model.Find(items, namespace, name); ok {
		found = append(found, o)
	}
	return found
}
