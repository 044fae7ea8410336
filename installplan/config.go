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

// Defaults of Config.
const (
	DefaultInstallTimeout  = time.Minute
	DefaultOLMNamespace    = "olm"
	DefaultMaxStatusBytes  = 1 << 20
	DefaultMaxInstallPlans = 5
	DefaultUnpackTimeout   = 10 * time.Minute
)

// Config tunes the package and those below it. The zero value means OLM's defaults; negative numbers are an
// *olmcore.InputError.
type Config struct {
	// InstallTimeout is how long a step may fail for a permanent reason before the plan fails: from status.startTime
	// or, when that is later, from the first failure of the present series, and for at least three tries. 0 = 1m.
	InstallTimeout time.Duration `json:"installTimeout,omitempty"`
	// DisableFinalizer: plans carry no finalizer of ours.
	DisableFinalizer bool `json:"disableFinalizer,omitempty"`
	// OLMNamespace is where pull Secrets are copied from. Empty = "olm".
	OLMNamespace string `json:"olmNamespace,omitempty"`
	// GlobalNamespace is where the catalogs are that all namespaces see: besides those of its own namespace a plan may
	// refer to bundles that were unpacked there. Empty = OLMNamespace. Package controllers sets it from
	// Options.GlobalNamespace, so that the two cannot differ in a configuration file.
	GlobalNamespace string `json:"-"`
	// SupportedKinds are the kinds, of any group, that steps may have besides those that the package knows by itself.
	// nil = OLM's eleven.
	SupportedKinds []string `json:"supportedKinds,omitempty"`
	// OverwriteUnmanaged: a step takes over an object that exists and was not handed to OLM, as OLM does. False: the
	// plan is refused unless the object is as the step wants it already; label olm.managed=true hands it over.
	OverwriteUnmanaged bool `json:"overwriteUnmanaged,omitempty"`
	// CopyAnySecret: a Secret step copies any Secret of OLMNamespace, as OLM does. False: only registry credentials
	// that a CatalogSource of OLMNamespace lists.
	CopyAnySecret bool `json:"copyAnySecret,omitempty"`
	// ChangeOwnedCRDs: a plan changes a CustomResourceDefinition whoever else owns it, as OLM does. False: only in ways
	// that take nothing away from others; the annotation olmcore/changeable-by on it names namespaces, separated by
	// commas, whose plans may change it regardless.
	ChangeOwnedCRDs bool `json:"changeOwnedCRDs,omitempty"`
	// SeparatePlans makes package controllers create one InstallPlan for each set of Subscriptions that depend on each
	// other (create.Sets). An Automatic Subscription then does not wait for the approval of an unrelated one. Other
	// callers pass each Set to create.Plan and set subscription.Input.SeparatePlans. false: one plan for each namespace,
	// as in OLM.
	SeparatePlans bool `json:"separatePlans,omitempty"`
	// MaxStatusBytes bounds the serialised status of a new plan. 0 = 1 MiB.
	MaxStatusBytes int `json:"maxStatusBytes,omitempty"`
	// MaxInstallPlans is how many plans of a namespace package sweep keeps as history. 0 = 5.
	MaxInstallPlans int `json:"maxInstallPlans,omitempty"`
	// OPMImage and UtilImage are the images that package unpack runs; it requires both.
	OPMImage  string `json:"opmImage,omitempty"`
	UtilImage string `json:"utilImage,omitempty"`
	// UnpackTimeout bounds one try to unpack a bundle; 0 means that it takes as long as it takes. nil = 10m.
	UnpackTimeout *time.Duration `json:"unpackTimeout,omitempty"`
	// RunAsUser is the user ID of the Pods that unpack. 0 leaves it open.
	RunAsUser int64 `json:"runAsUser,omitempty"`
}

// Validate returns an *olmcore.InputError for a number that is negative.
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

// Equal reports whether two configurations are the same.
func (c Config) Equal(d Config) bool {
	return c.equalsForSteps(d) && c.equalsForPlans(d) && c.equalsForUnpacking(d)
}

// equalsForSteps compares what decides how steps are applied.
func (c Config) equalsForSteps(d Config) bool {
	return (c.SupportedKinds == nil) == (d.SupportedKinds == nil) && slices.Equal(c.SupportedKinds, d.SupportedKinds) &&
		c.InstallTimeout == d.InstallTimeout && c.OverwriteUnmanaged == d.OverwriteUnmanaged &&
		c.CopyAnySecret == d.CopyAnySecret && c.ChangeOwnedCRDs == d.ChangeOwnedCRDs
}

// equalsForPlans compares what decides which plans exist, and where.
func (c Config) equalsForPlans(d Config) bool {
	return c.OLMNamespace == d.OLMNamespace && c.GlobalNamespace == d.GlobalNamespace && c.DisableFinalizer == d.DisableFinalizer &&
		c.SeparatePlans == d.SeparatePlans && c.MaxStatusBytes == d.MaxStatusBytes && c.MaxInstallPlans == d.MaxInstallPlans
}

// equalsForUnpacking compares what decides how bundles are unpacked.
func (c Config) equalsForUnpacking(d Config) bool {
	const none = time.Duration(-1)
	a, b := cmp.Or(c.UnpackTimeout, new(none)), cmp.Or(d.UnpackTimeout, new(none))
	return *a == *b && c.OPMImage == d.OPMImage && c.UtilImage == d.UtilImage && c.RunAsUser == d.RunAsUser
}

func (c Config) olmNamespace() string { return cmp.Or(c.OLMNamespace, DefaultOLMNamespace) }

func (c Config) globalNamespace() string { return cmp.Or(c.GlobalNamespace, c.olmNamespace()) }

// StepKind is a kind of object that the steps of plans may have. Of one that a CustomResourceDefinition defines only
// Kind is known: it may be of any group.
type StepKind struct {
	schema.GroupVersionKind
	// Verbs are how the API server calls what plans do with it: create, and where they do patch and delete.
	Verbs []string
}

// StepKinds returns the kinds of the objects that steps may have, sorted by group and kind.
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
