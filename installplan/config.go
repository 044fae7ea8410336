// SPDX-License-Identifier: Apache-2.0

package installplan

import (
	"slices"
	"time"

	"github.com/olmcore/olm/olmcore"
)

// Defaults of Config.
const (
	DefaultInstallTimeout      = time.Minute
	DefaultTransientTimeout    = 10 * time.Minute
	DefaultCRDEstablishTimeout = time.Minute
	DefaultRetryInterval       = 5 * time.Second
	DefaultCheckInterval       = 30 * time.Second
	DefaultOrphanGrace         = 5 * time.Minute
	DefaultCleanupGrace        = time.Minute
	DefaultVisibilityGrace     = 10 * time.Second
	DefaultOLMNamespace        = "olm"
	DefaultMaxSteps            = 2000
	DefaultMaxStatusBytes      = 1 << 20
	DefaultMaxInstallPlans     = 5
	DefaultMaxDeletesPerSweep  = 5
	DefaultUnpackRetention     = 24 * time.Hour
	DefaultUnpackTimeout       = 10 * time.Minute
	DefaultUnpackRetryInterval = 5 * time.Minute
	DefaultUnpackJobTTL        = 5 * time.Minute
	DefaultUnpackBackoffLimit  = 3
	DefaultMaxUnpackJobs       = 5
)

// Config tunes the package. The zero value means OLM's defaults; negative
// numbers are an *olmcore.InputError.
type Config struct {
	// InstallTimeout is how long a step may fail for a permanent reason before the
	// plan fails: from status.startTime or, when that is later, from the first
	// failure of the present series, and for at least three tries. 0 = 1m.
	InstallTimeout time.Duration
	// TransientTimeout is the same for reasons that pass by themselves, and the time
	// after which a plan that failed of one is tried again. 0 = 10m.
	TransientTimeout time.Duration
	// CRDEstablishTimeout is how long a CustomResourceDefinition may take to be
	// served. 0 = 1m.
	CRDEstablishTimeout time.Duration
	// RetryInterval is the time between two rounds of a plan that is Installing.
	// 0 = 5s.
	RetryInterval time.Duration
	// CheckInterval is the time between two checks of missing OperatorGroups, and of
	// the custom resources that a plan failed of. 0 = 30s.
	CheckInterval time.Duration
	// OrphanGrace is how old a plan without status may get before it is reported.
	// 0 = 5m.
	OrphanGrace time.Duration
	// CleanupGrace bounds how long the finalizer holds a deleted plan. 0 = 1m.
	CleanupGrace time.Duration
	// VisibilityGrace is how long Create waits for what another object proves to
	// exist and the snapshot does not show. 0 = 10s.
	VisibilityGrace time.Duration
	// DisableFinalizer: plans carry no finalizer of ours.
	DisableFinalizer bool
	// OLMNamespace is where pull Secrets are copied from. Empty = "olm".
	OLMNamespace string
	// GlobalNamespace is where the catalogs are that all namespaces see: besides
	// those of its own namespace a plan may refer to bundles that were unpacked
	// there. Empty = OLMNamespace.
	GlobalNamespace string
	// ContributorsOnly: a new plan is owned by the Subscriptions that it changes
	// or installs, not by all of the namespace.
	ContributorsOnly bool
	// MaxSteps bounds the steps of a plan. 0 = 2000.
	MaxSteps int
	// MaxStatusBytes bounds the serialised status of a new plan. 0 = 1 MiB.
	MaxStatusBytes int
	// MaxInstallPlans is how many plans of a namespace Sweep keeps as history.
	// 0 = 5.
	MaxInstallPlans int
	// MaxDeletesPerSweep bounds the plans that one Sweep deletes. 0 = 5.
	MaxDeletesPerSweep int
	// UnpackRetention is how long the objects of an unpacked bundle are kept, from
	// their creation, when no plan refers to them. 0 = 24h.
	UnpackRetention time.Duration
	// OPMImage and UtilImage are the images that Unpack runs; it requires both.
	OPMImage, UtilImage string
	// UnpackTimeout bounds one try to unpack a bundle. 0 = 10m.
	UnpackTimeout time.Duration
	// UnpackTimeoutDisabled: a try takes as long as it takes.
	UnpackTimeoutDisabled bool
	// UnpackRetryInterval is the time between a failed try and the next. 0 = 5m.
	UnpackRetryInterval time.Duration
	// UnpackJobTTL is how long a finished Job is kept. 0 = 5m.
	UnpackJobTTL time.Duration
	// UnpackBackoffLimit is how often one try may start its Pod again. 0 = 3.
	UnpackBackoffLimit int32
	// MaxUnpackJobs is how many failed tries of a bundle are kept, besides the
	// first. 0 = 5.
	MaxUnpackJobs int
	// RunAsUser is the user ID of the Pods that unpack. 0 leaves it open.
	RunAsUser int64
	// SupportedKinds are the kinds, of any group, that steps may have besides
	// those that the package knows by itself. nil = OLM's eleven.
	SupportedKinds []string
	// OverwriteUnmanaged: a step takes over an object that exists and was not handed
	// to OLM, as OLM does. False: the plan is refused unless the object is as the
	// step wants it already; label olm.managed=true hands it over.
	OverwriteUnmanaged bool
	// CopyAnySecret: a Secret step copies any Secret of OLMNamespace, as OLM does.
	// False: only registry credentials that a CatalogSource of OLMNamespace lists.
	CopyAnySecret bool
	// ChangeOwnedCRDs: a plan changes a CustomResourceDefinition whoever else owns
	// it, as OLM does. False: only in ways that take nothing away from others; the
	// annotation olmcore/changeable-by on it names namespaces, separated by commas,
	// whose plans may change it regardless.
	ChangeOwnedCRDs bool
	// KeyPrefix starts the keys of our own annotations. Empty =
	// olmcore.KeyPrefix.
	KeyPrefix string
}

var defaultSupportedKinds = []string{
	"PrometheusRule", "ServiceMonitor", "PodDisruptionBudget", "PriorityClass", "VerticalPodAutoscaler",
	"ConsoleYAMLSample", "ConsoleQuickStart", "ConsoleCLIDownload", "ConsoleLink", "ConsolePlugin", "NetworkPolicy",
}

// Equal reports whether two Configs are the same.
func (c Config) Equal(d Config) bool {
	if (c.SupportedKinds == nil) != (d.SupportedKinds == nil) || !slices.Equal(c.SupportedKinds, d.SupportedKinds) {
		return false
	}
	return c.InstallTimeout == d.InstallTimeout && c.DisableFinalizer == d.DisableFinalizer &&
		c.OLMNamespace == d.OLMNamespace && c.GlobalNamespace == d.GlobalNamespace &&
		c.OverwriteUnmanaged == d.OverwriteUnmanaged && c.CopyAnySecret == d.CopyAnySecret && c.ChangeOwnedCRDs == d.ChangeOwnedCRDs &&
		c.MaxStatusBytes == d.MaxStatusBytes && c.MaxInstallPlans == d.MaxInstallPlans &&
		c.OPMImage == d.OPMImage && c.UtilImage == d.UtilImage && c.RunAsUser == d.RunAsUser &&
		c.UnpackTimeout == d.UnpackTimeout && c.UnpackTimeoutDisabled == d.UnpackTimeoutDisabled
}

// Validate returns an *olmcore.InputError for a negative number, else nil.
func (c Config) Validate() error {
	for _, d := range [...]struct {
		field string
		value time.Duration
	}{
		{"InstallTimeout", c.InstallTimeout}, {"TransientTimeout", c.TransientTimeout},
		{"CRDEstablishTimeout", c.CRDEstablishTimeout}, {"RetryInterval", c.RetryInterval},
		{"CheckInterval", c.CheckInterval}, {"OrphanGrace", c.OrphanGrace}, {"CleanupGrace", c.CleanupGrace},
		{"VisibilityGrace", c.VisibilityGrace}, {"UnpackRetention", c.UnpackRetention},
		{"UnpackTimeout", c.UnpackTimeout}, {"UnpackRetryInterval", c.UnpackRetryInterval}, {"UnpackJobTTL", c.UnpackJobTTL},
		{"UnpackBackoffLimit", time.Duration(c.UnpackBackoffLimit)}, {"MaxUnpackJobs", time.Duration(c.MaxUnpackJobs)},
		{"RunAsUser", time.Duration(c.RunAsUser)},
		{"MaxInstallPlans", time.Duration(c.MaxInstallPlans)}, {"MaxDeletesPerSweep", time.Duration(c.MaxDeletesPerSweep)},
		{"MaxSteps", time.Duration(c.MaxSteps)}, {"MaxStatusBytes", time.Duration(c.MaxStatusBytes)},
	} {
		if d.value < 0 {
			return &olmcore.InputError{Field: "Config." + d.field, Problem: "is negative"}
		}
	}
	return nil
}

// or returns value, or the default when it is zero.
func or[T comparable](value, byDefault T) T {
	var zero T
	if value == zero {
		return byDefault
	}
	return value
}

func (c Config) supportedKinds() []string {
	if c.SupportedKinds == nil {
		return defaultSupportedKinds
	}
	return c.SupportedKinds
}

// ownKey is the key of an annotation of our own: under the default prefix, so
// that looking one up does not allocate, and without a prefix.
type ownKey struct{ full, name string }

var (
	ownAccount      = ownKey{olmcore.KeyPrefix + "service-account", "service-account"}
	ownChangeable   = ownKey{olmcore.KeyPrefix + "changeable-by", "changeable-by"}
	ownContentHash  = ownKey{olmcore.KeyPrefix + "content-hash", "content-hash"}
	ownContributors = ownKey{olmcore.KeyPrefix + "contributors", "contributors"}
	ownPackages     = ownKey{olmcore.KeyPrefix + "packages", "packages"}
	ownStepHash     = ownKey{olmcore.KeyPrefix + "step-hash", "step-hash"}
	ownUnpackHash   = ownKey{olmcore.KeyPrefix + "unpack-spec-hash", "unpack-spec-hash"}
)

func (c Config) key(k ownKey) string {
	if c.KeyPrefix == "" {
		return k.full
	}
	return c.KeyPrefix + k.name
}

func (c Config) accountKey() string      { return c.key(ownAccount) }
func (c Config) changeableKey() string   { return c.key(ownChangeable) }
func (c Config) contentHashKey() string  { return c.key(ownContentHash) }
func (c Config) contributorsKey() string { return c.key(ownContributors) }
func (c Config) packagesKey() string     { return c.key(ownPackages) }
func (c Config) stepHashKey() string     { return c.key(ownStepHash) }
func (c Config) unpackHashKey() string   { return c.key(ownUnpackHash) }
