// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"slices"
	"strings"

	"github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/olmcore/olm/csv/certificate"
	"github.com/olmcore/olm/csv/internal/backend"
	"github.com/olmcore/olm/csv/internal/owned"
	"github.com/olmcore/olm/csv/internal/read"
	"github.com/olmcore/olm/olmcore"
)

// facts are what is observed of the webhooks of a CSV.
type facts struct {
	Source
	// services are the Deployments that are called, by the names of their Services.
	services map[string]string
	crds     map[string]*apiextensionsv1.CustomResourceDefinition
	// desired are the names of the configurations of descriptions.
	desired map[olmcore.Key]origin
	// named are all admission configurations; all those of the namespace's CSVs, of any version, without what is being
	// deleted, sorted; own those of this CSV among them; made those of its descriptions.
	named    map[olmcore.Key]olmcore.Object
	all, own []olmcore.Object
	made     map[origin][]olmcore.Object
	// reach contains the judged rules of the descriptions of admission webhooks.
	reach map[origin]*reach
}

// origin is the description that a configuration was made from.
type origin struct{ kind, generateName string }

func originOf(w *description) origin { return origin{kindOf(w), w.GenerateName} }

// labelled returns the origin of a configuration as its label has it.
func labelled(o olmcore.Object) origin {
	return origin{olmcore.RefOf(o).Kind, o.GetLabels()[labelGenerateName]}
}

// from returns the origin of a configuration of this CSV: its name says it where the label was changed.
func (f *facts) from(o olmcore.Object) origin {
	if named, ok := f.desired[olmcore.KeyOf(o)]; ok {
		return named
	}
	return labelled(o)
}

func factsOf(s Source) *facts {
	f := &facts{
		Source: s, services: map[string]string{}, crds: owned.ByName(s.CRDs, ""),
		desired: map[olmcore.Key]origin{}, named: map[olmcore.Key]olmcore.Object{}, made: map[origin][]olmcore.Object{},
	}
	for _, name := range backend.Names(s.CSV) {
		f.services[backend.ServiceName(name)] = name
	}
	for i := range s.CSV.Spec.WebhookDefinitions {
		if w := &s.CSV.Spec.WebhookDefinitions[i]; kindOf(w) != "" {
			f.desired[keyOf(s.CSV, w)] = originOf(w)
			f.made[originOf(w)] = nil
		}
	}
	for _, o := range s.Objects.ValidatingWebhookConfigurations.Items {
		f.add(o)
	}
	for _, o := range s.Objects.MutatingWebhookConfigurations.Items {
		f.add(o)
	}
	slices.SortFunc(f.all, func(a, b olmcore.Object) int { return olmcore.RefOf(a).Compare(olmcore.RefOf(b)) })
	for _, o := range f.all {
		if !owned.ByIncarnation(s.CSV).Owns(o.GetLabels()) {
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

func (f *facts) add(o olmcore.Object) {
	f.named[olmcore.KeyOf(o)] = o
	owner, _ := olmcore.OwnerOf(o.GetLabels())
	if owner.Kind == v1alpha1.ClusterServiceVersionKind && owner.Namespace == f.CSV.Namespace && o.GetDeletionTimestamp() == nil {
		f.all = append(f.all, o)
	}
}

func (f *facts) isDescribed(from origin) bool {
	_, described := f.made[from]
	return described
}

// unread names the lists that were needed and not read; empty for none.
func (f *facts) unread() string {
	if len(f.CSV.Spec.WebhookDefinitions) == 0 {
		return ""
	}
	return strings.Join(slices.Concat(
		read.Missing(f.Objects.ValidatingWebhookConfigurations, "ValidatingWebhookConfigurations"),
		read.Missing(f.Objects.MutatingWebhookConfigurations, "MutatingWebhookConfigurations"),
		f.UnreadCRDs,
	), ", ")
}

// bundle returns the bundle that a client of a Service must get which has the given one. Nil: a client that has none
// must not be made yet.
func (f *facts) bundle(service string, have []byte) []byte {
	if bundle := f.wantedBundle(service, have); bundle != nil {
		return bundle
	}
	return have
}

func (f *facts) wantedBundle(service string, have []byte) []byte {
	if f.Backends == nil {
		return nil
	}
	return f.Backends.Trust(f.services[service], have)
}

// trusts reports whether a bundle holds an authority that a client of a Service must have: what is missing beside it
// follows without a new installation.
func (f *facts) trusts(service string, have []byte) bool {
	want := f.wantedBundle(service, have)
	if want == nil || bytes.Equal(have, want) {
		return len(have) > 0
	}
	bundle := certificate.ParseBundle(want)
	return slices.ContainsFunc(certificate.ParseBundle(have), func(a certificate.Authority) bool { return bundle.Has(a.ID) })
}

// kindOf returns the kind of the configuration of a description, empty for a conversion.
func kindOf(w *description) string {
	switch w.Type {
	case v1alpha1.ValidatingAdmissionWebhook:
		return validatingKind
	case v1alpha1.MutatingAdmissionWebhook:
		return mutatingKind
	}
	return ""
}

// nameOf is the name of the configuration of a description.
//
// Differs: OLM lets the API server choose a name, so that two managers, or one with a stale cache, make two.
func nameOf(c *owned.CSV, w *description) string {
	return w.GenerateName + "-" + olmcore.NameSuffix(10, c.Namespace, c.Name, string(c.UID), w.GenerateName, kindOf(w))
}

func keyOf(c *owned.CSV, w *description) olmcore.Key {
	return olmcore.Key{Group: admissionregistrationv1.GroupName, Kind: kindOf(w), Name: nameOf(c, w)}
}

// calls returns where a configuration calls Deployments of this CSV.
func (f *facts) calls(o olmcore.Object) []*admissionregistrationv1.WebhookClientConfig {
	var configs []*admissionregistrationv1.WebhookClientConfig
	for _, h := range hooksOf(o) {
		service := h.clientConfig.Service
		if service != nil && service.Namespace == f.CSV.Namespace && f.services[service.Name] != "" {
			configs = append(configs, h.clientConfig)
		}
	}
	return configs
}

// clientConfig returns where a CRD makes the API server ask for conversions, nil for none.
func clientConfig(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.WebhookClientConfig {
	if crd == nil || crd.Spec.Conversion == nil || crd.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter || crd.Spec.Conversion.Webhook == nil {
		return nil
	}
	return crd.Spec.Conversion.Webhook.ClientConfig
}

// calledBy reports whether a conversion calls a Deployment of this CSV.
func (f *facts) calledBy(config *apiextensionsv1.WebhookClientConfig) bool {
	return config != nil && config.Service != nil && config.Service.Namespace == f.CSV.Namespace && f.services[config.Service.Name] != ""
}

// converted returns the CRDs of this CSV that its Deployments convert and that it may make trust them, sorted.
func (f *facts) converted() []*apiextensionsv1.CustomResourceDefinition {
	described := owned.OwnedCRDs(f.CSV)
	for i := range f.CSV.Spec.WebhookDefinitions {
		described.Insert(f.CSV.Spec.WebhookDefinitions[i].ConversionCRDs...)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range f.CRDs {
		config := clientConfig(crd)
		if described.Has(crd.Name) && crd.DeletionTimestamp == nil && f.calledBy(config) && mayFollow(f, crd) {
			crds = append(crds, crd)
		}
	}
	slices.SortFunc(crds, func(a, b *apiextensionsv1.CustomResourceDefinition) int { return strings.Compare(a.Name, b.Name) })
	return crds
}
