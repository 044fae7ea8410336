// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/csv/serving"
	"github.com/olmcore/olm/olmcore"
)

// facts contains the classified objects of a Source. factsOf fills it once. Afterwards it is read-only.
type facts struct {
	source Clients // as the caller passed it
	// services contains the names of the Deployments that are called, by the names of their Services.
	services map[string]string
	// crds contains the observed CRDs, by name.
	crds map[string]*apiextensionsv1.CustomResourceDefinition
	// desired contains the description of each configuration that should exist, by the key of the configuration.
	desired map[olmcore.Key]origin
	// named contains all observed admission configurations.
	named map[olmcore.Key]olmcore.Object
	// all contains the configurations that belong to any CSV of the namespace and are not being deleted, sorted. own
	// contains those of this CSV.
	all, own []olmcore.Object
	// made contains the configurations of this CSV, by their description. Each description has an entry.
	made map[origin][]olmcore.Object
	// apis contains the owned group versions whose description names a Deployment, with their APIServices.
	apis []*api
	// reach contains the judged rules of the descriptions of admission webhooks.
	reach map[origin]*reach
}

// origin identifies the description that a configuration was created from.
type origin struct{ kind, generateName string }

// originOf returns the origin of the configuration of a description.
func originOf(w *description) origin { return origin{kindOf(w), w.GenerateName} }

// labelled returns the origin of a configuration according to its label.
func labelled(o olmcore.Object) origin {
	return origin{olmcore.RefOf(o).Kind, o.GetLabels()[labelGenerateName]}
}

// from returns the origin of a configuration of this CSV. The name of the configuration takes precedence over its
// label, because the label may be changed.
func (f *facts) from(o olmcore.Object) origin {
	if named, ok := f.desired[olmcore.KeyOf(o)]; ok {
		return named
	}
	return labelled(o)
}

// factsOf returns the facts of a Source.
func factsOf(s Clients) *facts {
	if s.CSV == nil {
		s.CSV = &model.CSV{} // it describes no clients
	}
	f := &facts{
		source: s, services: map[string]string{}, crds: model.IndexByName(s.CRDs, ""),
		apis: s.apis(), desired: map[olmcore.Key]origin{}, named: map[olmcore.Key]olmcore.Object{}, made: map[origin][]olmcore.Object{},
	}
	for _, name := range DeploymentNames(s.CSV) {
		f.services[ServiceName(name)] = name
	}
	for i := range s.CSV.Spec.WebhookDefinitions {
		if w := &s.CSV.Spec.WebhookDefinitions[i]; kindOf(w) != "" {
			f.desired[keyOf(s.CSV, w)] = originOf(w)
			f.made[originOf(w)] = nil
		}
	}
	objects := cmp.Or(s.Objects, &serving.Objects{})
	for _, o := range objects.ValidatingWebhookConfigurations.Items {
		f.add(o)
	}
	for _, o := range objects.MutatingWebhookConfigurations.Items {
		f.add(o)
	}
	slices.SortFunc(f.all, func(a, b olmcore.Object) int { return olmcore.RefOf(a).Compare(olmcore.RefOf(b)) })
	for _, o := range f.all {
		if !model.OwnerWithUID(s.CSV).Owns(o.GetLabels()) {
			continue
		}
		f.own = append(f.own, o)
		if from := f.from(o); f.isDescribed(from) {
			f.made[from] = append(f.made[from], o)
		}
	}
	f.reach = reachOf(f)
	return f
}

// add adds an observed configuration.
func (f *facts) add(o olmcore.Object) {
	f.named[olmcore.KeyOf(o)] = o
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	if owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == f.source.CSV.Namespace && o.GetDeletionTimestamp() == nil {
		f.all = append(f.all, o)
	}
}

// isDescribed reports whether the spec of the CSV contains a description.
func (f *facts) isDescribed(from origin) bool {
	_, described := f.made[from]
	return described
}

// unread returns the names of the lists that are needed and were not read. It is empty if all were read.
func (f *facts) unread() string {
	if len(f.source.CSV.Spec.WebhookDefinitions) == 0 {
		return ""
	}
	objects := cmp.Or(f.source.Objects, &serving.Objects{})
	return strings.Join(slices.Concat(
		read.Missing(objects.ValidatingWebhookConfigurations, "ValidatingWebhookConfigurations"),
		read.Missing(objects.MutatingWebhookConfigurations, "MutatingWebhookConfigurations"),
		f.source.UnreadCRDs,
	), ", ")
}

// kindOf returns the kind of the configuration of a description. It is empty for a conversion.
func kindOf(w *description) string {
	switch w.Type {
	case v1alpha1.ValidatingAdmissionWebhook:
		return validatingKind
	case v1alpha1.MutatingAdmissionWebhook:
		return mutatingKind
	}
	return ""
}

// nameOf returns the name of the configuration of a description.
//
// Differs: OLM lets the API server choose a name, so two managers, or one with a stale cache, create two.
func nameOf(c *model.CSV, w *description) string {
	return w.GenerateName + "-" + olmcore.NameSuffix(10, c.Namespace, c.Name, string(c.UID), w.GenerateName, kindOf(w))
}

func keyOf(c *model.CSV, w *description) olmcore.Key {
	return olmcore.Key{Group: admissionregistrationv1.GroupName, Kind: kindOf(w), Name: nameOf(c, w)}
}

// calls returns the client configurations of the webhooks that call Deployments of this CSV.
func (f *facts) calls(o olmcore.Object) []*admissionregistrationv1.WebhookClientConfig {
	var configs []*admissionregistrationv1.WebhookClientConfig
	for _, h := range hooksOf(o) {
		service := h.clientConfig.Service
		if service != nil && service.Namespace == f.source.CSV.Namespace && f.services[service.Name] != "" {
			configs = append(configs, h.clientConfig)
		}
	}
	return configs
}

// clientConfig returns the client configuration of the conversion webhook of a CRD. It is nil if there is none.
func clientConfig(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd == nil || crd.Spec.Conversion == nil {
		return nil
	}
	conversion := crd.Spec.Conversion
	if conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil {
		return nil
	}
	return conversion.Webhook.ClientConfig
}

// calledBy reports whether a conversion calls a Deployment of this CSV.
func (f *facts) calledBy(config *apiextensionsv1.WebhookClientConfig) bool {
	return config != nil && config.Service != nil && config.Service.Namespace == f.source.CSV.Namespace &&
		f.services[config.Service.Name] != ""
}

// converted returns the CRDs that Deployments of this CSV convert and whose caBundle it may update, sorted by name.
func (f *facts) converted() []olmcore.Object {
	described := model.OwnedCRDNames(f.source.CSV)
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		described.Insert(f.source.CSV.Spec.WebhookDefinitions[i].ConversionCRDs...)
	}
	var crds []olmcore.Object
	for _, crd := range f.source.CRDs {
		config := clientConfig(crd)
		if described.Has(crd.Name) && crd.DeletionTimestamp == nil && f.calledBy(config) && mayFollow(f, crd) {
			crds = append(crds, crd)
		}
	}
	slices.SortFunc(crds, func(a, b olmcore.Object) int { return strings.Compare(a.GetName(), b.GetName()) })
	return crds
}

// missingWebhooks returns the Services of the Deployments of some descriptions that Install has not created a webhook
// or conversion for yet.
func missingWebhooks(f *facts, isIncluded func(*description) bool) (services []string) {
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		if isIncluded(w) && f.isMissing(w) {
			services = append(services, ServiceName(w.DeploymentName))
		}
	}
	return services
}

// isMissing reports whether Install has not created the webhook or conversion of a description yet.
func (f *facts) isMissing(w *description) bool {
	if isConversion(w) {
		return slices.ContainsFunc(w.ConversionCRDs, func(name string) bool {
			crd := f.crds[name]
			config := clientConfig(crd)
			isOpen := config == nil || len(config.CABundle) == 0 || f.callsPredecessor(crd)
			return crd != nil && f.source.notOurs(crd) == "" && !f.calledBy(config) && isOpen
		})
	}
	calls := func(o olmcore.Object) bool { return len(f.calls(o)) > 0 }
	return isAdmission(w) && !slices.ContainsFunc(f.made[originOf(w)], calls)
}
