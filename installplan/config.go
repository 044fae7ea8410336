// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/olmcore/olm/installplan/internal/kinds"
	"github.com/olmcore/olm/olmcore"
)

// Defaults of the fields of Config.
const (
	DefaultInstallTimeout  = time.Minute
	DefaultOLMNamespace    = "olm"
	DefaultMaxStatusBytes  = 1 << 20
	DefaultMaxInstallPlans = 5
	DefaultUnpackTimeout   = 10 * time.Minute
)

// Config configures this package and the packages below it. The zero value selects the defaults of OLM. Validate
// returns an *olmcore.InputError if a number is negative.
type Config struct {
	// InstallTimeout is the time after which a plan fails because a step is refused, or because the write of a step is
	// rejected for a permanent reason. 0 means one minute.
	//   - For a refused step, the time starts at status.startTime.
	//   - For a rejected write, the time starts at the first of the consecutive failures if that is later than
	//     status.startTime. The write must also fail at least three times.
	//   - A step that can never be applied fails the plan at once.
	InstallTimeout time.Duration `json:"installTimeout,omitempty"`
	// DisableFinalizer disables Finalizer. Plans do not get the finalizer, and it is removed from plans that have it.
	DisableFinalizer bool `json:"disableFinalizer,omitempty"`
	// OLMNamespace is the namespace from which pull Secrets are copied. "" means "olm".
	OLMNamespace string `json:"olmNamespace,omitempty"`
	// GlobalNamespace is the namespace of the global catalogs. A plan may reference bundles that were unpacked there or in
	// its own namespace. "" means OLMNamespace. Package controllers sets this field from Options.GlobalNamespace, so a
	// configuration file cannot set another value.
	GlobalNamespace string `json:"-"`
	// SupportedKinds contains the kinds that steps may have in addition to the built-in kinds, for any API group. nil
	// means the eleven kinds that OLM supports.
	SupportedKinds []string `json:"supportedKinds,omitempty"`
	// OverwriteUnmanaged makes steps overwrite existing objects that OLM does not manage, as OLM does. If
	// OverwriteUnmanaged is false, a step is refused unless the object already provides everything that the step
	// describes. A ServiceAccount is extended in both cases. The label olm.managed=true makes OLM manage an object.
	OverwriteUnmanaged bool `json:"overwriteUnmanaged,omitempty"`
	// CopyAnySecret allows a Secret step to copy any Secret of OLMNamespace, as OLM does. If it is false, only
	// registry credentials that a CatalogSource of OLMNamespace lists are copied.
	CopyAnySecret bool `json:"copyAnySecret,omitempty"`
	// ChangeOwnedCRDs allows a plan to change a CustomResourceDefinition regardless of its other owners, as OLM does. If
	// it is false, a plan must not change a definition of another owner in a way that Narrowings reports. The annotation
	// olmcore/changeable-by of the definition exempts the plans of some namespaces from this rule. Its value is a list of
	// these namespaces, separated by commas.
	ChangeOwnedCRDs bool `json:"changeOwnedCRDs,omitempty"`
	// SeparatePlans creates one InstallPlan for each set of Subscriptions that depend on each other, so that an
	// Automatic Subscription does not wait for the approval of an unrelated Subscription. Package controllers implements
	// this. Callers that do not use that package pass each Set of create.Sets to create.Plan, and set
	// subscription.Input.SeparatePlans. If SeparatePlans is false, one InstallPlan is created for each resolution of a
	// namespace, as in OLM.
	SeparatePlans bool `json:"separatePlans,omitempty"`
	// MaxStatusBytes is the maximum size of the serialized status of a new plan. 0 means 1 MiB.
	MaxStatusBytes int `json:"maxStatusBytes,omitempty"`
	// MaxInstallPlans is the number of plans that package sweep keeps in a namespace as history. 0 means 5.
	MaxInstallPlans int `json:"maxInstallPlans,omitempty"`
	// OPMImage and UtilImage are the images that package unpack runs. Package unpack requires both.
	OPMImage  string `json:"opmImage,omitempty"`
	UtilImage string `json:"utilImage,omitempty"`
	// UnpackTimeout is the maximum duration of one attempt to unpack a bundle. nil means 10 minutes, and 0 means no
	// limit.
	UnpackTimeout *time.Duration `json:"unpackTimeout,omitempty"`
	// RunAsUser is the user ID of the Pods that unpack bundles. If RunAsUser is 0, no user ID is set.
	RunAsUser int64 `json:"runAsUser,omitempty"`
}

// Validate returns an *olmcore.InputError if a number is negative.
func (c Config) Validate() error {
	unpack := cmp.Or(c.UnpackTimeout, new(time.Duration))
	for _, n := range [...]struct {
		field string
		value int64
	}{
		{"InstallTimeout", int64(c.InstallTimeout)}, {"MaxStatusBytes", int64(c.MaxStatusBytes)},
		{"MaxInstallPlans", int64(c.MaxInstallPlans)}, {"RunAsUser", c.RunAsUser}, {"UnpackTimeout", int64(*unpack)},
	} {
		if n.value < 0 {
			return &olmcore.InputError{Field: "Config." + n.field, Problem: "is negative"}
		}
	}
	return nil
}

// Equal reports whether two configurations are equal. A nil and an empty SupportedKinds differ.
func (c Config) Equal(d Config) bool {
	return c.equalsForSteps(d) && c.equalsForPlans(d) && c.equalsForUnpacking(d)
}

// equalsForSteps compares the fields that determine how steps are applied.
func (c Config) equalsForSteps(d Config) bool {
	return (c.SupportedKinds == nil) == (d.SupportedKinds == nil) && slices.Equal(c.SupportedKinds, d.SupportedKinds) &&
		c.InstallTimeout == d.InstallTimeout && c.OverwriteUnmanaged == d.OverwriteUnmanaged &&
		c.CopyAnySecret == d.CopyAnySecret && c.ChangeOwnedCRDs == d.ChangeOwnedCRDs
}

// equalsForPlans compares the fields that determine which plans exist, and in which namespaces.
func (c Config) equalsForPlans(d Config) bool {
	return c.OLMNamespace == d.OLMNamespace && c.GlobalNamespace == d.GlobalNamespace && c.DisableFinalizer == d.DisableFinalizer &&
		c.SeparatePlans == d.SeparatePlans && c.MaxStatusBytes == d.MaxStatusBytes && c.MaxInstallPlans == d.MaxInstallPlans
}

// equalsForUnpacking compares the fields that determine how bundles are unpacked.
func (c Config) equalsForUnpacking(d Config) bool {
	const none = time.Duration(-1)
	a, b := cmp.Or(c.UnpackTimeout, new(none)), cmp.Or(d.UnpackTimeout, new(none))
	return *a == *b && c.OPMImage == d.OPMImage && c.UtilImage == d.UtilImage && c.RunAsUser == d.RunAsUser
}

func (c Config) olmNamespace() string { return cmp.Or(c.OLMNamespace, DefaultOLMNamespace) }

func (c Config) globalNamespace() string { return cmp.Or(c.GlobalNamespace, c.olmNamespace()) }

// StepKind is a kind of object that steps may have. Group and Version are empty for optional kinds such as
// ServiceMonitor, because steps may use them with any API group.
type StepKind struct {
	schema.GroupVersionKind
	// Verbs contains the API verbs that plans need for the kind: always create, and also patch and delete if plans use
	// these verbs.
	Verbs []string
}

// StepKinds returns the kinds of objects that steps may have, sorted by group and kind.
func (c Config) StepKinds() []StepKind {
	var all []StepKind
	add := func(k kinds.Kind) {
		verbs := []string{"create"}
		if !k.CreateOnly {
			verbs = append(verbs, "patch")
		}
		if k.Immutable != nil {
			verbs = append(verbs, "delete")
		}
		all = append(all, StepKind{k.GVK, verbs})
	}
	for _, k := range kinds.Known {
		add(k)
	}
	supported := c.SupportedKinds
	if supported == nil {
		supported = slices.Collect(maps.Keys(kinds.Supported))
	}
	for _, kind := range supported {
		k := kinds.Supported[kind]
		k.GVK.Kind = kind
		add(k)
	}
	slices.SortFunc(all, func(a, b StepKind) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Kind, b.Kind), slices.Compare(a.Verbs, b.Verbs))
	})
	return all
}
