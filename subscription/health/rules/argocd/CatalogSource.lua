-- Health of CatalogSource objects for Argo CD, written from the table of
-- github.com/olmcore/olm/subscription/health/internal/rules: change it there.
-- Key in argocd-cm: resource.customizations.health.operators.coreos.com_CatalogSource
local hs = {}

local function at(value, ...)
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then
      return nil
    end
    value = value[key]
  end
  return value
end

local function text(value)
  if type(value) == "string" then
    return value
  end
  return ""
end

local function oneOf(value, list)
  for _, entry in ipairs(list) do
    if value == entry then
      return true
    end
  end
  return false
end

local function condition(kind, status, reasons)
  local conditions = at(obj, "status", "conditions")
  if type(conditions) ~= "table" then
    return nil
  end
  for _, c in ipairs(conditions) do
    if type(c) == "table" and c.type == kind and c.status == status and (reasons == nil or oneOf(c.reason, reasons)) then
      return c
    end
  end
  return nil
end

local function said(value, otherwise)
  if text(value) ~= "" then
    return value
  end
  return otherwise
end

-- Deleting
if text(at(obj, "metadata", "deletionTimestamp")) ~= "" then
  hs.status = "Progressing"
  hs.message = "the CatalogSource is being deleted"
  return hs
end

-- Invalid
if oneOf(at(obj, "status", "reason"), {"SpecInvalidError", "ConfigMapError", "RegistryServerError"}) then
  hs.status = "Degraded"
  hs.message = said(at(obj, "status", "message"), text(at(obj, "status", "reason")))
  return hs
end

-- Ready
if at(obj, "status", "connectionState", "lastObservedState") == "READY" then
  hs.status = "Healthy"
  hs.message = "the registry answers"
  return hs
end

-- Available
if condition("Available", "True") ~= nil then
  hs.status = "Healthy"
  hs.message = said(at(condition("Available", "True"), "message"), "the registry serves")
  return hs
end

-- Degraded
if condition("Degraded", "True") ~= nil then
  hs.status = "Degraded"
  hs.message = said(at(condition("Degraded", "True"), "message"), "no registry Pod serves")
  return hs
end

-- Unreachable
if oneOf(at(obj, "status", "connectionState", "lastObservedState"), {"TRANSIENT_FAILURE", "SHUTDOWN"}) then
  hs.status = "Degraded"
  hs.message = "the registry does not answer: " .. text(at(obj, "status", "connectionState", "lastObservedState"))
  return hs
end

-- Connecting
if text(at(obj, "status", "connectionState", "lastObservedState")) ~= "" then
  hs.status = "Progressing"
  hs.message = "the connection is " .. text(at(obj, "status", "connectionState", "lastObservedState"))
  return hs
end

-- NotYetReconciled
hs.status = "Progressing"
hs.message = "the registry has not been observed yet"
return hs
