// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/olmcore/olm/csv/internal/model"
	"github.com/olmcore/olm/olmcore"
)

// OLM's labels of an admission webhook configuration: the name of the description that it was created from, and the
// hash of the description.
const (
	labelGenerateName = "olm.webhook-description-generate-name"
	labelHash         = "olm.webhook-description-hash"
)

const (
	validatingKind = "ValidatingWebhookConfiguration"
	mutatingKind   = "MutatingWebhookConfiguration"
)

// ConfigurationNames returns the names of the admission webhook configurations of a CSV, in the order of its
// descriptions. Conversion webhooks have no such configuration.
func ConfigurationNames(c *model.CSV) (validating, mutating []string) {
	for i := range c.Spec.WebhookDefinitions {
		switch w := &c.Spec.WebhookDefinitions[i]; kindOf(w) {
		case validatingKind:
			validating = append(validating, nameOf(c, w))
		case mutatingKind:
			mutating = append(mutating, nameOf(c, w))
		}
	}
	return validating, mutating
}

// unlabelled returns a message about the first configuration of the CSV without labelGenerateName, or an empty string.
// Such a configuration is not deleted.
func unlabelled(own []olmcore.Object) string {
	for _, o := range own {
		if o.GetLabels()[labelGenerateName] == "" {
			return fmt.Sprintf("%s %s has no label %s", olmcore.RefOf(o).Kind, o.GetName(), labelGenerateName)
		}
	}
	return ""
}

// admits reports whether an up-to-date configuration of a description exists, calls the CSV, and trusts its
// certificate.
func (f *facts) admits(w *description) bool {
	hash, err := olmcore.Hash(w)
	return err == nil && slices.ContainsFunc(f.made[originOf(w)], func(o olmcore.Object) bool {
		calls := f.calls(o)
		return labelled(o) == originOf(w) && o.GetLabels()[labelHash] == hash && len(calls) > 0 &&
			!slices.ContainsFunc(calls, func(config *admissionregistrationv1.WebhookClientConfig) bool {
				return !f.source.trusts(config.CABundle, f.bundle(config.Service.Name, config.CABundle))
			})
	})
}

// admissions returns the writes that create or update the admission webhook configurations. Configurations that OLM
// created keep their names.
func (f *facts) admissions() (actions []olmcore.Action, problem string) {
	selector, ok := f.namespaces()
	if !ok {
		return nil, "error retrieving OperatorGroup info"
	}
	isNamed := func(o olmcore.Object) bool { return f.from(o) != labelled(o) }
	if problem = unlabelled(slices.DeleteFunc(slices.Clone(f.own), isNamed)); problem != "" {
		return nil, problem
	}
	for i := range f.source.CSV.Spec.WebhookDefinitions {
		w := &f.source.CSV.Spec.WebhookDefinitions[i]
		if kindOf(w) == "" {
			continue
		}
		hash, err := olmcore.Hash(w)
		if err != nil {
			return nil, fmt.Sprintf("webhook description %q: %v", w.GenerateName, err)
		}
		for _, o := range f.made[originOf(w)] {
			if a := f.repair(o, f.configuration(w, hash, selector, o)); a != nil {
				actions = append(actions, a)
			}
		}
		want := f.configuration(w, hash, selector, nil)
		if len(f.made[originOf(w)]) > 0 || hooksOf(want)[0].clientConfig.CABundle == nil {
			continue // it exists, or must not be created yet
		}
		if problem = f.nameConflict(want); problem != "" {
			return nil, problem
		}
		actions = append(actions, olmcore.Create{
			Target: olmcore.RefOf(want), Object: want, As: f.source.Account,
			Cause: olmcore.Cause{Reason: ReasonInstall, Message: "webhook " + w.GenerateName + " has no configuration"},
		})
	}
	return actions, ""
}

// nameConflict returns a message about an existing object that has the name of a new configuration. It is empty if
// there is none.
func (f *facts) nameConflict(want olmcore.Object) string {
	key := olmcore.KeyOf(want)
	switch found := f.named[key]; {
	case found == nil:
		return ""
	case found.GetDeletionTimestamp() != nil:
		return fmt.Sprintf("%s %s is being deleted", key.Kind, key.Name)
	}
	return fmt.Sprintf("%s %s exists and does not belong to ClusterServiceVersion %s", key.Kind, key.Name, f.source.CSV.Name)
}

// namespaces returns the selector of the namespaces that webhooks are called for. It is nil for all namespaces. ok is
// false without an OperatorGroup.
func (f *facts) namespaces() (selector *metav1.LabelSelector, ok bool) {
	g := f.source.Group
	if g == nil || g.UID == "" {
		return nil, false
	}
	if len(g.Spec.TargetNamespaces) > 0 {
		return &metav1.LabelSelector{MatchLabels: map[string]string{model.GroupLabelPrefix + string(g.UID): ""}}, true
	}
	return g.Spec.Selector.DeepCopy(), true
}

// configuration returns the desired configuration of a description. have is the existing configuration, or nil. The
// caBundle is derived from that of have.
//
// Source: operator-lifecycle-manager pkg/controller/install/webhook.go.
func (f *facts) configuration(w *description, hash string, selector *metav1.LabelSelector, have olmcore.Object) olmcore.Object {
	labels := model.OwnerWithUID(f.source.CSV).Labels()
	labels[labelGenerateName] = w.GenerateName
	labels[labelHash] = hash
	labels[olmcore.LabelManaged] = "true"
	meta := metav1.ObjectMeta{Name: nameOf(f.source.CSV, w), Labels: labels}
	rules := rulesFor(f, w, have)
	w = w.DeepCopy()
	w.Rules, w.ContainerPort = rules, port(w.ContainerPort)
	var bundle []byte
	service := ServiceName(w.DeploymentName)
	for _, config := range f.calls(have) {
		if config.Service.Name == service && len(bundle) == 0 {
			bundle = config.CABundle
		}
	}
	bundle = f.bundle(service, bundle)
	kind := metav1.TypeMeta{APIVersion: admissionregistrationv1.SchemeGroupVersion.String(), Kind: kindOf(w)}
	if kind.Kind == validatingKind {
		hook := w.GetValidatingWebhook(f.source.CSV.Namespace, selector, bundle)
		return &admissionregistrationv1.ValidatingWebhookConfiguration{
			TypeMeta: kind, ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{hook},
		}
	}
	hook := w.GetMutatingWebhook(f.source.CSV.Namespace, selector, bundle)
	return &admissionregistrationv1.MutatingWebhookConfiguration{
		TypeMeta: kind, ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{hook},
	}
}

// repair returns the update of a configuration to the desired one, or nil if they differ only in defaults of the API
// server. It does not add the UID of the owner to configurations that OLM created.
func (f *facts) repair(have, want olmcore.Object) olmcore.Action {
	labels := maps.Clone(want.GetLabels())
	delete(labels, olmcore.LabelOwnerUID)
	labels, changed := olmcore.MergeMaps(have.GetLabels(), labels)
	if !changed && semantic.DeepEqual(webhooksOf(have), webhooksOf(want)) {
		return nil
	}
	after := have.DeepCopyObject().(olmcore.Object)
	after.SetLabels(labels)
	switch after := after.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		after.Webhooks = want.(*admissionregistrationv1.ValidatingWebhookConfiguration).Webhooks
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		after.Webhooks = want.(*admissionregistrationv1.MutatingWebhookConfiguration).Webhooks
	}
	u := olmcore.UpdateOf(have, after, olmcore.Cause{
		Reason: ReasonInstall,
		Message: fmt.Sprintf("%s %s does not match its description in ClusterServiceVersion %s",
			olmcore.RefOf(have).Kind, have.GetName(), f.source.CSV.Name),
	})
	u.As = f.source.Account
	return u
}

// hook points to the fields of one webhook of a configuration that this package reads and writes.
type hook struct {
	clientConfig *admissionregistrationv1.WebhookClientConfig
	selector     **metav1.LabelSelector
	rules        *[]rule
}

// hooksOf returns the webhooks of a configuration of either kind.
func hooksOf(o olmcore.Object) (hooks []hook) {
	switch o := o.(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			hooks = append(hooks, hook{&w.ClientConfig, &w.NamespaceSelector, &w.Rules})
		}
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			hooks = append(hooks, hook{&w.ClientConfig, &w.NamespaceSelector, &w.Rules})
		}
	}
	return hooks
}

// semantic compares like equality.Semantic, but compares caBundles as bytes, which is faster than by reflection.
var semantic = conversion.EqualitiesOrDie(bytes.Equal)

// webhooksOf returns a copy of the webhooks of a configuration with the defaults of the API server.
func webhooksOf(o olmcore.Object) any {
	switch o := o.DeepCopyObject().(type) {
	case *admissionregistrationv1.ValidatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setDefaults(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds,
				w.ClientConfig.Service, w.Rules)
		}
		return o.Webhooks
	case *admissionregistrationv1.MutatingWebhookConfiguration:
		for i := range o.Webhooks {
			w := &o.Webhooks[i]
			setDefault(&w.ReinvocationPolicy, admissionregistrationv1.NeverReinvocationPolicy)
			setDefaults(&w.FailurePolicy, &w.MatchPolicy, &w.NamespaceSelector, &w.ObjectSelector, &w.TimeoutSeconds,
				w.ClientConfig.Service, w.Rules)
		}
		return o.Webhooks
	}
	return nil
}

func setDefaults(
	failure **admissionregistrationv1.FailurePolicyType, match **admissionregistrationv1.MatchPolicyType,
	namespaces, objects **metav1.LabelSelector, timeout **int32,
	service *admissionregistrationv1.ServiceReference, rules []admissionregistrationv1.RuleWithOperations,
) {
	setDefault(failure, admissionregistrationv1.Fail)
	setDefault(match, admissionregistrationv1.Equivalent)
	setDefault(namespaces, metav1.LabelSelector{})
	setDefault(objects, metav1.LabelSelector{})
	setDefault(timeout, 10)
	if service != nil {
		setDefault(&service.Port, defaultPort)
	}
	for i := range rules {
		setDefault(&rules[i].Scope, admissionregistrationv1.AllScopes)
	}
}

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = new(value)
	}
}

// removedConfigurations returns the deletions of the configurations whose description is no longer part of the spec.
// They are deleted once the present descriptions are valid and have configurations, so that no request is unchecked in
// the meantime.
//
// Differs: OLM keeps the configuration of a description whose type changed.
func removedConfigurations(f *facts) []olmcore.Action {
	gone := slices.DeleteFunc(slices.Clone(f.own), func(o olmcore.Object) bool {
		return f.isDescribed(f.from(o)) || f.from(o).generateName == ""
	})
	isEmpty := func(list []olmcore.Object) bool { return len(list) == 0 }
	if len(gone) == 0 || slices.ContainsFunc(slices.Collect(maps.Values(f.made)), isEmpty) || problemOf(f) != "" {
		return nil
	}
	var actions []olmcore.Action
	for _, o := range gone {
		actions = append(actions, olmcore.DeleteOf(o, olmcore.Cause{
			Reason:  ReasonRemovedFromSpec,
			Message: "ClusterServiceVersion " + f.source.CSV.Name + " no longer describes webhook " + f.from(o).generateName,
		}))
	}
	return actions
}

// followGroup updates the namespaceSelectors of a configuration of this CSV, and rules that an installation narrowed
// and that may be wider now.
//
// Differs: OLM updates the namespaceSelectors only during installations. So after an OperatorGroup is created again,
// the webhooks of its CSVs are called for no namespace.
func followGroup(f *facts, c *change) {
	o := c.before
	selector, ok := f.namespaces()
	if !ok || !slices.Contains(f.made[f.from(o)], o) {
		return
	}
	name := olmcore.RefOf(o).Kind + " " + o.GetName()
	for i, h := range hooksOf(o) {
		if !semantic.DeepEqual(cmp.Or(*h.selector, &metav1.LabelSelector{}), cmp.Or(selector, &metav1.LabelSelector{})) {
			*hooksOf(c.copied())[i].selector = selector
			c.why = name + " is not called for the namespaces of OperatorGroup " + f.source.Group.Name
		}
	}
	if rules := widenedRules(f, o); rules != nil {
		*hooksOf(c.copied())[0].rules, c.why = rules, name+" has narrower rules than its ClusterServiceVersion may have"
	}
}
